// SPDX-License-Identifier: MIT
//
// page.js: the page around runner.js: examples to choose from, an image or numbers of one's own, and the
// results as bars. It knows of the model only what model.json says.
import { Model, arrays } from "./runner.js";

const MOST_SHOWN = 100, MOST_TYPED = 1000;

const find = (id) => document.getElementById (id);

function say (text, failed = false) {
  find ("status").textContent = text;
  find ("status").className = failed ? "failed" : "";
}

// Height and width of an input that is one grey image as networks take it, (1, 1, height, width), or null.
function imageSize (port) {
  const [n, channels, height, width] = port.shape;
  return port.shape.length === 4 && n === 1 && channels === 1 && Math.min (height, width) > 1 ? { height, width } : null;
}

const describe = (port) => `${port.name} (${port.shape.join (", ")})`;

// Values from 0 to 255 as a picture, white on black as the data has it.
function drawImage (canvas, values, { height, width }) {
  Object.assign (canvas, { height, width });
  const image = new ImageData (width, height);
  values.forEach ((value, i) => image.data.set ([value, value, value, 255], 4 * i));
  canvas.getContext ("2d").putImageData (image, 0, 0);
}

// A file as grey values of the wanted size, in an array of the class @array.
async function readImage (file, { height, width }, array) {
  const canvas = new OffscreenCanvas (width, height);
  const context = canvas.getContext ("2d");
  context.drawImage (await createImageBitmap (file), 0, 0, width, height);
  const { data } = context.getImageData (0, 0, width, height);
  return array.from ({ length: height * width }, (_, i) => (
    0.299 * data[4 * i] + 0.587 * data[4 * i + 1] + 0.114 * data[4 * i + 2]));
}

// @names: of the values, or null.
function tableOf (port, all, names) {
  const values = Array.from (all.subarray (0, MOST_SHOWN), Number), table = document.createElement ("table");
  const most = Math.max (...values.map (Math.abs).filter (Number.isFinite), 1e-30);
  const rest = all.length > values.length ? `: the first ${values.length} of ${all.length}` : "";
  table.createCaption ().textContent = describe (port) + rest;
  values.forEach ((value, i) => {
    const row = table.insertRow (), bar = document.createElement ("div");
    bar.style.width = `${Math.round (Math.min (Math.abs (value) / most, 1) * 200)}px`;
    for (const content of [names?.[i] ?? String (i), value.toPrecision (4), bar]) {
      const cell = row.insertCell ();
      cell.append (content);
      cell.className = content === bar ? "bar" : "";
    }
  });
  return table;
}

function showResult (model, outputs) {
  find ("result").replaceChildren (...model.outputs.map ((port, i) => (
    tableOf (port, outputs[port.name], i === 0 ? model.classes : null))));
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

// @element runs the model when it is clicked; @values: by input.
function addExample (model, element, values) {
  element.onclick = () => {
    find ("examples").querySelector (".chosen")?.classList.remove ("chosen");
    element.classList.add ("chosen");
    return show (model, values);
  };
  find ("examples").append (element);
}

function offerPictures (model, port, size) {
  for (let i = 0, values; (values = model.example (port.name, i)) !== null; i++) {
    const canvas = document.createElement ("canvas");
    drawImage (canvas, values, size);
    canvas.title = `example ${i}`;
    addExample (model, canvas, { [port.name]: values });
  }
}

function offerOwn (model, port, size) {
  find ("own").hidden = false;
  find ("file").onchange = async ({ target }) => {
    if (target.files.length === 0)
      return;
    try {
      await show (model, { [port.name]: await readImage (target.files[0], size, arrays[port.dtype]) });
    } catch (why) {
      say (`${target.files[0].name}: ${why.message}`, true);
    }
  };
}

// Example @i of every input, or null where one has none.
function exampleOf (model, i) {
  const values = model.inputs.map ((port) => model.example (port.name, i));
  return values.includes (null) ? null : Object.fromEntries (model.inputs.map ((port, k) => [port.name, values[k]]));
}

function offerExamples (model) {
  for (let i = 0, values; model.inputs.length > 0 && (values = exampleOf (model, i)) !== null; i++) {
    const button = document.createElement ("button");
    button.textContent = `example ${i}`;
    addExample (model, button, values);
  }
}

// The numbers of @text, again and again until the input is full.
function readNumbers (port, text) {
  const words = text.split (/[\s,]+/).filter ((word) => word !== "");
  const bad = words.find ((word) => Number.isNaN (Number (word)) && word !== "NaN");
  if (words.length === 0 || bad !== undefined)
    throw new Error (words.length === 0 ? `${port.name}: there are no numbers` : `${port.name}: “${bad}” is no number`);
  const array = arrays[port.dtype], is64 = array === BigInt64Array || array === BigUint64Array;
  const numbers = words.map ((word) => (is64 ? BigInt (word) : Number (word)));
  return array.from ({ length: port.shape.reduce ((a, b) => a * b, 1) }, (_, i) => numbers[i % numbers.length]);
}

function offerFields (model) {
  const form = find ("inputs"), first = exampleOf (model, 0), button = document.createElement ("button");
  const fields = model.inputs.map ((port) => {
    const label = document.createElement ("label"), field = document.createElement ("textarea");
    const example = first?.[port.name];
    field.value = example !== undefined && example.length <= MOST_TYPED ? example.join (" ") : "0 1 2 3";
    label.append (`${describe (port)}, ${port.dtype}: numbers, which are repeated until it is full`, field);
    return label;
  });
  button.textContent = "Run";
  form.replaceChildren (...fields, button);
  form.hidden = false;
  form.onsubmit = (event) => {
    event?.preventDefault ();
    try {
      const values = fields.map ((label, i) => readNumbers (model.inputs[i], label.querySelector ("textarea").value));
      return show (model, Object.fromEntries (model.inputs.map ((port, i) => [port.name, values[i]])));
    } catch (why) {
      return say (why.message, true);
    }
  };
}

removeEventListener ("error", globalThis.refuse, true);
say ("Loading …");
try {
  const model = await Model.load ();
  const [port] = model.inputs, size = model.inputs.length === 1 ? imageSize (port) : null;
  document.title = find ("title").textContent = model.name.replaceAll ("_", " ");
  say (`Ready: ${model.inputs.map (describe).join (", ")}.`);
  if (size !== null) {
    offerPictures (model, port, size);
    offerOwn (model, port, size);
  } else {
    offerExamples (model);
    offerFields (model);
  }
  const example = find ("examples").firstElementChild;
  await (example !== null ? example.onclick () : find ("inputs").onsubmit?.());
} catch (why) {
  say (why.message, true);
}
