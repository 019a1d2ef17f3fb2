"use strict";
/* Values under the pointer or the keyboard, and the copy button. Without it the page loses only these. */
(() => {
  const units = ["MB", "GB", "TB"];
  const size = (megabytes) => {
    if (megabytes === null) return "?";
    let value = megabytes, unit = 0;
    while (value >= 999.5 && unit < units.length - 1) { value /= 1024; unit += 1; }
    return `${value.toFixed(value < 99.95 ? 1 : 0)} ${units[unit]}`;
  };
  const speed = (value) => value === null ? "?" : `${value}/s`;
  const nearest = (times, wanted) => {
    let low = 0, high = times.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (times[middle] <= wanted) low = middle; else high = middle;
    }
    return wanted - times[low] <= times[high] - wanted ? low : high;
  };

  for (const chart of document.querySelectorAll(".chart")) {
    const data = JSON.parse(chart.querySelector("script").textContent);
    const [reader, drawing, cursor, slider, values] =
      [".reader", ".drawing", ".cursor", "input", ".values"].map((name) => chart.querySelector(name));
    if (!data.times.length) continue;
    const span = data.until - data.since;
    const say = data.measure === "speed" ? speed : size;
    const tell = (at) => {
      const when = data.start + data.times[at];
      const day = span > 72000 ? { weekday: "short", day: "numeric", month: "short" } : {};
      const clock = { hour: "2-digit", minute: "2-digit", ...(span > 72000 ? {} : { second: "2-digit" }) };
      const time = new Date(when * 1000).toLocaleString("en-GB", { ...day, ...clock });
      const words = data.lines.map((line) => `${line.name} ${say(line.values[at])}`);
      values.textContent = [time, ...words].join(" · ");
      slider.setAttribute("aria-valuetext", values.textContent);
      return when;
    };
    const show = (at, follow) => {
      const when = tell(at);
      const place = `${Math.min(100, Math.max(0, (when - data.since) / span * 100))}%`;
      cursor.setAttribute("x1", place);
      cursor.setAttribute("x2", place);
      cursor.setAttribute("visibility", "visible");
      if (follow) slider.value = at;
    };
    slider.addEventListener("input", () => show(Number(slider.value), false));
    slider.addEventListener("focus", () => show(Number(slider.value), false));
    drawing.addEventListener("pointermove", (event) => {
      const box = drawing.getBoundingClientRect();
      const wanted = data.since + (event.clientX - box.left) / box.width * span - data.start;
      show(nearest(data.times, wanted), true);
    });
    reader.hidden = false;
    tell(data.times.length - 1);
  }

  const reason = document.querySelector(".reason");
  for (const spot of document.querySelectorAll("button.spot")) {
    for (const event of ["pointerenter", "focus", "click"]) {
      spot.addEventListener(event, () => { reason.textContent = spot.getAttribute("aria-label"); });
    }
  }

  const button = document.getElementById("copy");
  if (button === null) return;
  const text = document.getElementById("copy-text"), answer = document.getElementById("copied");
  const select = () => {
    getSelection().selectAllChildren(text);
    return document.execCommand("copy");
  };
  button.hidden = false;
  button.addEventListener("click", async () => {
    let done = false;
    try {
      await navigator.clipboard.writeText(text.textContent);
      done = true;
    } catch {
      done = select();
    }
    answer.textContent = done ? "Copied." : "Selected: press ⌘C or Ctrl+C.";
  });
})();
