// The curve: delta over epsilon on a logarithmic scale, drawn as SVG.

const element = (tag, attributes, text) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  if (text !== undefined) made.textContent = text;
  return made;
};

export function curve({ points, at }, width) {
  const small = width < 500;
  const [height, left, right, top, bottom] = [small ? 260 : 300, 52, 14, 12, 42];
  const drawn = points.filter(([, , delta]) => delta > 1e-300);
  const most = drawn.at(-1)[0];
  const high = Math.ceil(Math.log10(Math.max(...drawn.map((point) => point[2]))));
  const low = Math.floor(Math.log10(Math.min(...drawn.map((point) => point[2]), at.delta || 1)));
  const x = (epsilon) => left + ((width - left - right) * epsilon) / most;
  const y = (delta) => top + ((height - top - bottom) * (high - Math.max(low, Math.log10(Math.max(delta, 1e-320))))) / Math.max(high - low, 1);
  const line = (which) => drawn.map((point, i) => `${i ? "L" : "M"}${x(point[0]).toFixed(1)} ${y(point[which]).toFixed(1)}`).join("");
  const back = [...drawn].reverse().map((point) => `L${x(point[0]).toFixed(1)} ${y(point[1]).toFixed(1)}`).join("");
  const known = `delta falls from ${drawn[0][2].toPrecision(2)} at epsilon 0 to ${drawn.at(-1)[2].toPrecision(2)} at epsilon ${most.toPrecision(3)}`;
  const picture = element("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Privacy curve: ${known}` });
  const add = (...made) => picture.append(element(...made));
  const step = Math.max(1, Math.ceil((high - low) / 7));
  for (let power = high; power >= low; power -= step) {
    const at_y = y(10 ** power);
    add("line", { class: "grid", x1: left, x2: width - right, y1: at_y, y2: at_y });
    add("text", { x: left - 8, y: at_y + 4, "text-anchor": "end" }, power === 0 ? "1" : `1e${power}`);
  }
  const rough = most / (small ? 4 : 7);
  const unit = 10 ** Math.floor(Math.log10(rough));
  const tick = [1, 2, 5, 10].map((m) => m * unit).find((size) => size >= rough);
  for (let epsilon = 0; epsilon <= most * 1.0001; epsilon += tick) add("text", { x: x(epsilon), y: height - bottom + 18, "text-anchor": "middle" }, String(Number(epsilon.toPrecision(6))));
  add("text", { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, "epsilon");
  add("text", { x: 12, y: (top + height - bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${(top + height - bottom) / 2})` }, "delta");
  add("path", { class: "region", d: `${line(2)}L${x(most)} ${top}L${x(drawn[0][0])} ${top}Z` });
  add("path", { class: "band", d: `${line(2)}${back}Z` });
  add("path", { class: "line", d: line(2) });
  add("text", { x: width - right - 6, y: top + 16, "text-anchor": "end" }, "every pair here holds");
  add("text", { x: left + 10, y: height - bottom - 12 }, small ? "no proof possible" : "no proof possible: real datasets do worse");
  if (at.delta > 0) {
    const [px, py] = [x(at.epsilon), y(at.delta)];
    add("path", { class: "mark", d: `M${left} ${py}H${px}V${height - bottom}` });
    add("circle", { class: "dot", cx: px, cy: py, r: 5.5 });
    add("text", { class: "strong", x: px + 10, y: py - 9 }, "this question");
  }
  return picture;
}
