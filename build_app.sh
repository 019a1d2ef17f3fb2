#!/usr/bin/env bash
# Builds dist/mpsbar.app, a zip and a disk image of it. See --help.
set -euo pipefail
cd "$(dirname "$0")"

readonly NAME=mpsbar
readonly APP=dist/$NAME.app
readonly WORK=build/app
readonly ENTITLEMENTS=packaging/app/entitlements.plist
readonly TOOLS=(codesign ditto hdiutil lipo xattr)

identity=-
profile=
python=${PYTHON:-}
only_check=
app_only=

usage() {
  cat <<'TEXT'
./build_app.sh [--sign IDENTITY [--notarize PROFILE]] [--python PATH] [--app-only]
./build_app.sh --check | --clean | --help

Builds dist/mpsbar.app with a Python of its own (in build/app), signs it, verifies it, and makes a
zip and a disk image. Needs macOS 13 or newer and a framework Python: python.org's or Homebrew's.

  --sign IDENTITY     a "Developer ID Application: …" in the keychain; default: ad hoc
  --notarize PROFILE  as stored by xcrun notarytool store-credentials; needs --sign
  --python PATH       the Python to build with; default: $PYTHON, else the newest that can
  --app-only          neither zip nor disk image
  --check             only check that everything needed is there; on other systems, as far as possible
  --clean             remove build/app, dist/mpsbar.app, the zip and the disk image
TEXT
}

say() { printf 'mpsbar: %s\n' "$*"; }

fail() {
  printf 'mpsbar: %s\n' "$*" >&2
  exit 1
}

need_value() { [[ $# -ge 2 && -n $2 && $2 != --* ]] || fail "$1 needs a value (see --help)"; }

parse_arguments() {
  while (($#)); do
    case $1 in
      --sign) need_value "$@"; identity=$2; shift ;;
      --notarize) need_value "$@"; profile=$2; shift ;;
      --python) need_value "$@"; python=$2; shift ;;
      --app-only) app_only=yes ;;
      --check) only_check=yes ;;
      --clean) clean; say "removed $WORK and what was in dist"; exit 0 ;;
      -h | --help) usage; exit 0 ;;
      *) fail "unknown argument: $1 (see --help)" ;;
    esac
    shift
  done
  if [[ -n $profile && -n $app_only ]]; then
    fail "--notarize is for the zip and the disk image, which --app-only skips"
  fi
  if [[ -n $profile && $identity == - ]]; then
    fail "Apple doesn't notarize ad hoc signatures: --notarize needs --sign IDENTITY"
  fi
}

clean() { rm -rf "$WORK" "$APP" dist/$NAME-*.zip dist/$NAME-*.dmg; }

is_mac() { [[ $(uname -s) == Darwin ]]; }

check_tools() {
  local tool
  for tool in "${TOOLS[@]}"; do
    command -v "$tool" >/dev/null || fail "$tool was not found: it comes with macOS and Xcode's command line tools (xcode-select --install)"
  done
  if [[ -n $profile ]]; then
    xcrun --find notarytool >/dev/null 2>&1 || fail "notarytool was not found: install Xcode 13 or newer, or its command line tools"
  fi
}

# Prints why a Python cannot build the app; nothing if it can. py2app needs a framework build: in a
# standalone one (uv, conda) modules of the standard library are not files.
why_not() {
  [[ -x $1 ]] || { echo "isn't an executable file"; return; }
  "$1" - <<'PYTHON' 2>/dev/null || echo "doesn't run"
import sys, sysconfig
if sys.version_info < (3, 10):
    print("is older than 3.10")
elif not sysconfig.get_config_var("PYTHONFRAMEWORK"):
    print("is not a framework build: use python.org's or Homebrew's, not uv's or conda's")
elif sysconfig.get_config_var("Py_GIL_DISABLED"):
    print("is a free-threaded build, which py2app doesn't support")
PYTHON
}

find_python() {
  local candidate version reason
  if [[ -n $python ]]; then
    candidate=$(command -v "$python") || fail "couldn't find $python"
    reason=$(why_not "$candidate")
    [[ -z $reason ]] || fail "$candidate $reason"
    python=$candidate
    return
  fi
  for version in 3.13 3.12 3.14 3.11 3.10; do
    for candidate in "/Library/Frameworks/Python.framework/Versions/$version/bin/python$version" \
      "/opt/homebrew/bin/python$version" "$(command -v python$version || true)"; do
      if [[ -n $candidate && -z $(why_not "$candidate") ]]; then
        python=$candidate
        return
      fi
    done
  done
  fail "couldn't find a Python that can build an app: install one from python.org, or brew install python@3.13; or name one: --python PATH"
}

check_sources() {
  local file
  for file in setup.py "$ENTITLEMENTS" packaging/app/start_app.py packaging/minimum_macos.py resources/$NAME.icns; do
    [[ -s $file ]] || fail "$file is missing"
  done
  [[ -x packaging/app/bin/$NAME ]] || fail "packaging/app/bin/$NAME is not executable"
}

read_version() { sed -n 's/^__version__ = "\(.*\)"$/\1/p' mpsbar/agent/__init__.py; }

check() {
  check_sources
  say "version $(read_version): all sources are there"
  if is_mac; then
    check_tools
    find_python
    say "all tools are there; would build with $python"
  else
    say "skipped because this is not macOS: the tools (${TOOLS[*]}), a framework Python, building, signing, verifying, zip and disk image"
    say "tests/packaging builds the app without them, unsigned"
  fi
}

build() {
  clean
  mkdir -p "$WORK" dist
  say "building with $python ($("$python" --version 2>&1))"
  "$python" -m venv "$WORK/venv"
  local venv_python=$WORK/venv/bin/python
  # setup.py runs without an isolated build: it needs the setuptools that pyproject.toml asks for,
  # and Python 3.10 and 3.11 bring an older one along.
  "$venv_python" -m pip install --quiet --disable-pip-version-check "setuptools>=77" "py2app>=0.28.10,<0.29" ".[terminal]"
  # Only the dependencies: mpsbar itself is built from this folder.
  "$venv_python" -m pip uninstall --quiet --yes $NAME
  rm -rf build/lib build/bdist.*  # left by pip; a later wheel would take it for sources
  "$venv_python" setup.py --quiet py2app --dist-dir dist --bdist-base "$WORK"
  [[ -x $APP/Contents/MacOS/$NAME ]] || fail "py2app didn't make $APP"
  local minimum
  minimum=$("$venv_python" packaging/minimum_macos.py "$APP")  # alone: so that its failure ends the build
  say "$minimum"
}

strip_app() {
  find "$APP" \( -name __pycache__ -o -name '*.dSYM' \) -prune -exec rm -rf {} +
  find "$APP" -name .DS_Store -delete
  xattr -cr "$APP"
}

sign_one() {
  local how=(--force --sign "$identity")
  if [[ $identity == - ]]; then
    how+=(--timestamp=none)
  else
    how+=(--options runtime --timestamp --entitlements "$ENTITLEMENTS")
  fi
  codesign "${how[@]}" "$1"
}

# From the inside out: a bundle is signed after its parts.
sign() {
  local file
  while IFS= read -r -d '' file; do
    sign_one "$file"
  done < <(find "$APP/Contents" -type f \( -name '*.so' -o -name '*.dylib' \) -print0)
  while IFS= read -r -d '' file; do
    sign_one "$file"
  done < <(find "$APP/Contents/Frameworks" -type d -path '*.framework/Versions/*' -prune -print0)
  while IFS= read -r -d '' file; do
    sign_one "$file"
  done < <(find "$APP/Contents/MacOS" -type f ! -name $NAME -print0)
  sign_one "$APP"
}

verify() {
  codesign --verify --deep --strict --verbose=2 "$APP" || fail "the signature isn't valid"
  [[ " $(lipo -archs "$APP/Contents/MacOS/$NAME") " == *" arm64 "* ]] || fail "$APP isn't built for Apple Silicon: the Python is Intel's"
}

# The app starts, and starting it writes nothing into it.
check_start() {
  [[ $("$APP/Contents/MacOS/$NAME" --version) == "$NAME $(read_version)" ]] || fail "$APP doesn't start"
  codesign --verify --deep --strict "$APP" || fail "starting $APP changed it"
}

make_zip() { ditto -c -k --sequesterRsrc --keepParent "$APP" "$1"; }

make_image() {
  local stage=$WORK/image
  rm -rf "$stage"
  mkdir -p "$stage"
  ditto "$APP" "$stage/$NAME.app"
  ln -s /Applications "$stage/Applications"
  hdiutil create -quiet -volname $NAME -srcfolder "$stage" -format UDZO -ov "$1"
  if [[ $identity != - ]]; then
    codesign --force --sign "$identity" --timestamp "$1"
  fi
}

notarize() { xcrun notarytool submit "$1" --keychain-profile "$profile" --wait; }

main() {
  parse_arguments "$@"
  if [[ -n $only_check ]]; then
    check
    return
  fi
  is_mac || fail "the app can only be built on macOS; ./build_app.sh --check does what can be done here"
  check_sources
  check_tools
  find_python
  build
  strip_app
  sign
  verify
  check_start
  if [[ -n $app_only ]]; then
    say "made $APP"
    return
  fi
  local zip image
  zip=dist/$NAME-$(read_version).zip
  image=dist/$NAME-$(read_version).dmg
  make_zip "$zip"
  if [[ -n $profile ]]; then
    notarize "$zip"
    xcrun stapler staple "$APP"
    make_zip "$zip"
  fi
  make_image "$image"
  if [[ -n $profile ]]; then
    notarize "$image"
    xcrun stapler staple "$image"
  fi
  say "made $APP, $zip and $image"
  [[ $identity != - ]] || say "signed ad hoc: after a download, System Settings > Privacy & Security > Open Anyway"
}

main "$@"
