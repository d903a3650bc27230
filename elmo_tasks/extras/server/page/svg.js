// What is on the screen as SVG: boxes and words, at their places, in the colours of the page.

const XMLNS = "http://www.w3.org/2000/svg";
const MARGIN = 16;

/** An element of the page as the text of an SVG file. Parts that are scrolled out of sight are in it too. */
export function toSvg(root) {
  const svg = document.createElementNS(XMLNS, "svg");
  const shapes = document.createElementNS(XMLNS, "g");
  const extent = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
  const grow = (box) => {
    extent.left = Math.min(extent.left, box.left);
    extent.top = Math.min(extent.top, box.top);
    extent.right = Math.max(extent.right, box.right);
    extent.bottom = Math.max(extent.bottom, box.bottom);
  };
  draw(root, shapes, grow);
  const [width, height] = [extent.right - extent.left + 2 * MARGIN, extent.bottom - extent.top + 2 * MARGIN];
  const paper = add(svg, "rect", { width, height });
  paint(paper, "fill", getComputedStyle(document.body).backgroundColor);
  shapes.setAttribute("transform", `translate(${MARGIN - extent.left} ${MARGIN - extent.top})`);
  svg.append(shapes);
  for (const [key, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}` }))
    svg.setAttribute(key, value);
  return `${new XMLSerializer().serializeToString(svg)}\n`;
}

function draw(element, parent, grow) {
  if (!element.checkVisibility() || element.matches(".unseen, .readout, .switch, input")) return;
  const style = getComputedStyle(element);
  for (const box of element.getClientRects()) drawBox(box, style, parent, grow);
  for (const child of element.childNodes) {
    if (child.nodeType === Node.ELEMENT_NODE) draw(child, parent, grow);
    else if (child.nodeType === Node.TEXT_NODE) drawText(child, style, parent, grow);
  }
}

function drawBox(box, style, parent, grow) {
  const fill = rgba(style.backgroundColor);
  const lines = ["Top", "Right", "Bottom", "Left"].map((side) => parseFloat(style[`border${side}Width`]));
  if (box.width * box.height === 0 || (fill.opacity === 0 && lines.every((width) => width === 0))) return;
  grow(box);
  const radius = Math.min(parseFloat(style.borderTopLeftRadius), box.height / 2) || 0;
  const isFramed = lines.every((width) => width > 0);
  const inset = isFramed ? lines[0] / 2 : 0;
  const shape = {
    x: box.left + inset,
    y: box.top + inset,
    width: box.width - 2 * inset,
    height: box.height - 2 * inset,
  };
  if (fill.opacity > 0 || isFramed) {
    const rect = add(parent, "rect", { ...shape, rx: radius });
    paint(rect, "fill", style.backgroundColor);
    if (isFramed) {
      paint(rect, "stroke", style.borderTopColor);
      rect.setAttribute("stroke-width", lines[0]);
      if (style.borderTopStyle !== "solid") rect.setAttribute("stroke-dasharray", `${lines[0]} ${lines[0]}`);
    }
  }
  if (!isFramed && lines[2] > 0) {
    const line = add(parent, "rect", { x: box.left, y: box.bottom - lines[2], width: box.width, height: lines[2] });
    paint(line, "fill", style.borderBottomColor);
  }
}

/** The words of a text, each where it stands. */
function drawText(node, style, parent, grow) {
  const range = document.createRange();
  const font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  for (const { 0: word, index } of node.data.matchAll(/\S+/g)) {
    range.setStart(node, index);
    range.setEnd(node, index + word.length);
    const box = range.getBoundingClientRect();
    if (box.width * box.height === 0) continue;
    grow(box);
    const isVertical = style.writingMode.startsWith("vertical");
    const text = add(parent, "text", {
      "font-family": style.fontFamily,
      "font-size": style.fontSize,
      "font-weight": style.fontWeight,
      ...(isVertical
        ? { transform: `translate(${box.right - 0.25 * box.width} ${box.bottom}) rotate(-90)` }
        : { x: box.left, y: box.top + ascent(font), textLength: box.width, lengthAdjust: "spacingAndGlyphs" }),
    });
    paint(text, "fill", style.color);
    text.textContent = word;
  }
}

const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
canvas.canvas.width = canvas.canvas.height = 1;

/** How far the letters of a font reach above their base line. */
function ascent(font) {
  canvas.font = font;
  return canvas.measureText("x").fontBoundingBoxAscent;
}

/** A colour of CSS in a form that all programs read. */
function rgba(color) {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = color;
  canvas.fillRect(0, 0, 1, 1);
  const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
  return { rgb: `rgb(${red}, ${green}, ${blue})`, opacity: alpha / 255 };
}

function paint(shape, kind, color) {
  const { rgb, opacity } = rgba(color);
  shape.setAttribute(kind, rgb);
  if (opacity < 1) shape.setAttribute(`${kind}-opacity`, opacity.toFixed(3));
}

function add(parent, name, attributes) {
  const made = document.createElementNS(XMLNS, name);
  for (const [key, value] of Object.entries(attributes)) {
    made.setAttribute(key, typeof value === "number" ? Number(value.toFixed(2)) : value);
  }
  parent.append(made);
  return made;
}
