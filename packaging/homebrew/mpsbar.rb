# For a tap of one's own: brew tap mpsbar/tap, brew install mpsbar/tap/mpsbar.
# Built here and now, so nothing is quarantined. pip fetches what the app is made of, which
# homebrew-core would not allow. The release workflow fills in version and sha256.
class Mpsbar < Formula
  desc "Who holds my GPU memory? Menu bar and terminal monitor for PyTorch"
  homepage "https://github.com/mpsbar/mpsbar"
  url "https://github.com/mpsbar/mpsbar/archive/refs/tags/v0.1.0.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license "MIT"
  head "https://github.com/mpsbar/mpsbar.git", branch: "main"

  depends_on "python@3.13" => :build
  depends_on arch: :arm64
  depends_on macos: :ventura

  skip_clean "mpsbar.app"

  def install
    python = Formula["python@3.13"].opt_bin/"python3.13"
    system "./build_app.sh", "--app-only", "--python", python
    prefix.install "dist/mpsbar.app"
    bin.install_symlink prefix/"mpsbar.app/Contents/Resources/bin/mpsbar"
    man1.install "packaging/shell/mpsbar.1"
    bash_completion.install "packaging/shell/mpsbar.bash" => "mpsbar"
    zsh_completion.install "packaging/shell/_mpsbar"
    fish_completion.install "packaging/shell/mpsbar.fish"
  end

  def post_install
    # Homebrew rewrites the names in libraries, and with that voids the signature of the whole.
    system "codesign", "--force", "--deep", "--sign", "-", prefix/"mpsbar.app"
  end

  def caveats
    <<~EOS
      The menu bar app: open #{opt_prefix}/mpsbar.app
      For Open at Login, copy it to Applications: ditto #{opt_prefix}/mpsbar.app /Applications/mpsbar.app
    EOS
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/mpsbar --version")
    assert_match "finetune.py", shell_output("MPSBAR_REPLAY=m1-8gb #{bin}/mpsbar status")
    system "codesign", "--verify", "--deep", "--strict", prefix/"mpsbar.app"
  end
end
