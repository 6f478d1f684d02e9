// One trace on a canvas, newest at the right, with a line at a level that matters.

export function plot(canvas, values, { level = null, least = 1, colour = "#1f4e79", count = values.length } = {}) {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth || canvas.width, canvas.clientHeight || canvas.height];
  if (canvas.width !== Math.round(width * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  const top = Math.max(least, ...values) * 1.1;
  const y = (value) => height - 2 - (Math.max(value, 0) / top) * (height - 6);
  if (level !== null) {
    pen.strokeStyle = "#b3261e";
    pen.setLineDash([4, 3]);
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(0, y(level));
    pen.lineTo(width, y(level));
    pen.stroke();
    pen.setLineDash([]);
  }
  pen.strokeStyle = colour;
  pen.lineWidth = 1.5;
  pen.beginPath();
  values.forEach((value, i) => {
    const x = width - ((values.length - 1 - i) / Math.max(count - 1, 1)) * width;
    if (i === 0) pen.moveTo(x, y(value));
    else pen.lineTo(x, y(value));
  });
  pen.stroke();
}
