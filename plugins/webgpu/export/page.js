// SPDX-License-Identifier: MIT
//
// page.js: the page around runner.js: examples to choose from, an image of one's own, and the result as
// bars. It knows of the model only what model.json says.
import { Model } from "./runner.js";

const find = (id) => document.getElementById (id);

function say (text, failed = false) {
  find ("status").textContent = text;
  find ("status").className = failed ? "failed" : "";
}

// Height and width of an input that is a grey image, or null.
function imageSize (port) {
  const [height, width] = port.shape.slice (-2);
  const n = port.shape.reduce ((a, b) => a * b, 1);
  return port.shape.length >= 2 && n === height * width && Math.min (height, width) > 1 ? { height, width } : null;
}

// Values from 0 to 255 as a picture, white on black as the data has it.
function drawImage (canvas, values, { height, width }) {
  Object.assign (canvas, { height, width });
  const image = new ImageData (width, height);
  values.forEach ((value, i) => image.data.set ([value, value, value, 255], 4 * i));
  canvas.getContext ("2d").putImageData (image, 0, 0);
}

// A file as grey values of the wanted size, in an array like @like.
async function readImage (file, { height, width }, like) {
  const canvas = new OffscreenCanvas (width, height);
  const context = canvas.getContext ("2d");
  context.drawImage (await createImageBitmap (file), 0, 0, width, height);
  const { data } = context.getImageData (0, 0, width, height);
  return like.constructor.from ({ length: height * width }, (_, i) => (
    0.299 * data[4 * i] + 0.587 * data[4 * i + 1] + 0.114 * data[4 * i + 2]));
}

function showResult (model, outputs) {
  const values = Array.from (outputs[model.outputs[0].name], Number).slice (0, 100);
  const most = Math.max (...values.map (Math.abs), 1e-30);
  find ("result").replaceChildren (...values.map ((value, i) => {
    const row = document.createElement ("tr"), bar = document.createElement ("div");
    bar.style.width = `${Math.round (Math.abs (value) / most * 200)}px`;
    for (const content of [model.classes?.[i] ?? String (i), value.toPrecision (4), bar]) {
      const cell = row.insertCell ();
      cell.append (content);
      cell.className = content === bar ? "bar" : "";
    }
    return row;
  }));
}

async function show (model, values) {
  const start = performance.now ();
  try {
    showResult (model, await model.run (values));
    say (`Computed in ${(performance.now () - start).toFixed (1)} ms.`);
  } catch (why) {
    say (why.message, true);
  }
}

function offerExamples (model, port, size) {
  for (let i = 0, values; (values = model.example (port.name, i)) !== null; i++) {
    const canvas = document.createElement ("canvas");
    drawImage (canvas, values, size);
    canvas.title = `example ${i}`;
    canvas.onclick = () => {
      find ("examples").querySelector (".chosen")?.classList.remove ("chosen");
      canvas.classList.add ("chosen");
      return show (model, { [port.name]: values });
    };
    find ("examples").append (canvas);
  }
}

function offerOwn (model, port, size) {
  find ("own").hidden = false;
  find ("file").onchange = async ({ target }) => {
    if (target.files.length === 0)
      return;
    const like = new (model.example (port.name, 0)?.constructor ?? Float32Array) (0);
    try {
      await show (model, { [port.name]: await readImage (target.files[0], size, like) });
    } catch (why) {
      say (`${target.files[0].name}: ${why.message}`, true);
    }
  };
}

try {
  const model = await Model.load ();
  const [port] = model.inputs, size = port !== undefined ? imageSize (port) : null;
  document.title = find ("title").textContent = model.name.replaceAll ("_", " ");
  say (`Ready: ${model.inputs.map ((p) => `${p.name} (${p.shape.join (", ")})`).join (", ")}.`);
  if (model.inputs.length === 1 && size !== null) {
    offerExamples (model, port, size);
    offerOwn (model, port, size);
    await find ("examples").querySelector ("canvas")?.onclick ();
  }
} catch (why) {
  say (why.message, true);
}
