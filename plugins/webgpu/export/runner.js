// SPDX-License-Identifier: MIT
//
// runner.js: runs a model that tinycore exported for WebGPU. No other module is needed.
//
//   import { Model } from "./runner.js";
//   const model = await Model.load ("./");          // the folder of model.json
//   const { probabilities } = await model.run ({ image });
//
// Inputs and outputs are typed arrays in row-major order (f16 and smaller floats as their bits). What
// goes wrong is an Error that says so in words: no WebGPU, no adapter, a limit that is too low, a file
// that is missing, a lost device.

export const arrays = {
  bool: Uint8Array, i8: Int8Array, u8: Uint8Array, i16: Int16Array, u16: Uint16Array,
  i32: Int32Array, u32: Uint32Array, i64: BigInt64Array, u64: BigUint64Array,
  f8e4m3: Uint8Array, f8e5m2: Uint8Array, f16: Uint16Array, bf16: Uint16Array,
  f32: Float32Array, f64: Float64Array,
};

const wordUp = (n) => Math.max (4, Math.ceil (n / 4) * 4);

async function fetchFile (url, how) {
  const answer = await fetch (url).catch ((why) => { throw new Error (`${url}: ${why.message}`); });
  if (!answer.ok)
    throw new Error (`${url}: ${answer.status} ${answer.statusText}`);
  return answer[how] ();
}

// What the kernels need of a device, by the names that WebGPU gives its limits.
function limitsOf (model) {
  const most = (values) => values.reduce ((a, b) => Math.max (a, b), 0);
  const axis = (i) => most (model.kernels.map ((k) => k.items[i]));
  return {
    maxStorageBuffersPerShaderStage: most (model.kernels.map ((k) => k.params)),
    maxStorageBufferBindingSize: most (model.buffers.map ((b) => wordUp (b.bytes))),
    maxBufferSize: most ([wordUp (model.temporary_bytes), ...model.buffers.map ((b) => wordUp (b.bytes))]),
    maxComputeWorkgroupStorageSize: most (model.kernels.map ((k) => k.local_bytes)),
    maxComputeInvocationsPerWorkgroup: most (model.kernels.map ((k) => k.items[0] * k.items[1] * k.items[2])),
    maxComputeWorkgroupSizeX: axis (0),
    maxComputeWorkgroupSizeY: axis (1),
    maxComputeWorkgroupSizeZ: axis (2),
  };
}

// Throws unless the adapter has what is needed; gives what to ask for beyond the defaults.
export function checkLimits (needed, limits, name) {
  const asked = {};
  for (const [limit, value] of Object.entries (needed)) {
    if (!(value <= limits[limit]))
      throw new Error (`this model needs ${limit} of ${value}, the ${name} of this browser has ${limits[limit]}`);
    asked[limit] = limits[limit];
  }
  return asked;
}

async function openDevice (model) {
  if (globalThis.navigator?.gpu === undefined)
    throw new Error ("this browser has no WebGPU, or has it switched off for this page");
  const adapter = await navigator.gpu.requestAdapter ();
  if (adapter === null)
    throw new Error ("WebGPU finds no graphics adapter on this machine");
  const features = model.kernels.some ((k) => /^enable f16;/m.test (k.source)) ? ["shader-f16"] : [];
  for (const feature of features)
    if (!adapter.features.has (feature))
      throw new Error (`this model needs ${feature}, which the graphics adapter has not`);
  const requiredLimits = checkLimits (limitsOf (model), adapter.limits, "graphics adapter");
  return adapter.requestDevice ({ requiredLimits, requiredFeatures: features });
}

// The first line of a kernel says how many grid points a work-group runs.
function readKernel (kernel, source, url) {
  const head = /^\/\/tiny wgsl 1 points=(\d+) variables=0 buffers=(\d+)\n/.exec (source);
  if (head === null || Number (head[2]) !== kernel.params)
    throw new Error (`${url}: is no kernel of this model`);
  const points = Number (head[1]);
  return { ...kernel, source, points, items: points > 1 ? [points, 1, 1] : kernel.group };
}

async function loadFiles (folder) {
  const model = await fetchFile (new URL ("model.json", folder), "json");
  if (model.format !== "tinycore-model" || model.version !== 1 || model.renderer !== "WGSL")
    throw new Error ("model.json: is no model that this runner can run");
  const load = async (kernel) => {
    const url = new URL (kernel.file, folder);
    return readKernel (kernel, await fetchFile (url, "text"), url);
  };
  const [data, kernels] = await Promise.all ([
    model.data ? fetchFile (new URL (model.data, folder), "arrayBuffer") : new ArrayBuffer (0),
    Promise.all (model.kernels.map (load)),
  ]);
  for (const buffer of model.buffers)
    if (buffer.kind === "weight" && buffer.offset + buffer.bytes > data.byteLength)
      throw new Error (`${model.data}: is cut off: ${data.byteLength} bytes`);
  return { ...model, kernels, bytes: data };
}

export class Model {
  // @folder: of model.json, relative to the page.
  static async load (folder = "./") {
    const self = new Model ();
    self.model = await loadFiles (new URL (folder, globalThis.location?.href));
    self.device = await openDevice (self.model);
    self.device.lost.then ((info) => { self.lost = info.message || info.reason || "no reason given"; });
    await self.#checked (() => self.#build ());
    return self;
  }

  get name () { return this.model.name; }
  get inputs () { return this.model.inputs; }
  get outputs () { return this.model.outputs; }
  // The names of the first output's last axis, or null.
  get classes () { return this.model.metadata.classes?.split ("\n") ?? null; }

  // Example @i of @input, or null.
  example (input, i) {
    const port = this.inputs.find ((p) => p.name === input);
    const examples = this.model.examples.find ((e) => e.input === input);
    if (port === undefined || examples === undefined || i >= examples.count)
      return null;
    const { bytes } = this.model.buffers[port.buffer];
    const start = examples.offset + i * bytes;
    return new arrays[port.dtype] (this.model.bytes.slice (start, start + bytes));
  }

  // Runs once: inputs by name to outputs by name.
  run (inputs) {
    const result = (this.running ?? Promise.resolve ()).then (() => this.#runOnce (inputs));
    this.running = result.catch (() => {});
    return result;
  }

  async #checked (work) {
    for (const kind of ["validation", "out-of-memory", "internal"])
      this.device.pushErrorScope (kind);
    let result, thrown;
    try {
      result = await work ();
    } catch (why) {
      thrown = why;
    }
    const errors = await Promise.all ([0, 1, 2].map (() => this.device.popErrorScope ()));
    const error = errors.find ((e) => e !== null);
    if (this.lost !== undefined)
      throw new Error (`the graphics device was lost: ${this.lost}; load the page again`);
    if (error !== undefined || thrown !== undefined)
      throw new Error ((error ?? thrown).message);
    return result;
  }

  async #build () {
    const { device, model } = this;
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST | GPUBufferUsage.COPY_SRC;
    const newBuffer = (bytes) => device.createBuffer ({ size: wordUp (bytes), usage });
    const temporaries = newBuffer (model.temporary_bytes);
    this.buffers = model.buffers.map ((b) => ({
      buffer: b.kind === "temporary" ? temporaries : newBuffer (b.bytes),
      offset: b.kind === "temporary" ? b.offset : 0,
      size: wordUp (b.bytes),
    }));
    model.buffers.forEach ((b, i) => {
      if (b.kind === "weight")
        this.#write (i, new Uint8Array (model.bytes, b.offset, b.bytes));
    });
    this.readback = device.createBuffer ({
      size: model.outputs.reduce ((n, o) => n + this.buffers[o.buffer].size, 0),
      usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST,
    });
    const pipelines = await Promise.all (model.kernels.map ((k) => this.#newPipeline (k)));
    this.launches = model.launches.map ((l) => this.#newLaunch (l, pipelines[l.kernel]));
  }

  async #newPipeline (kernel) {
    const { device } = this;
    const entries = Array.from ({ length: kernel.params }, (_, binding) => (
      { binding, visibility: GPUShaderStage.COMPUTE, buffer: { type: "storage" } }));
    const layout = device.createBindGroupLayout ({ entries });
    const module = device.createShaderModule ({ label: kernel.name, code: kernel.source });
    const pipeline = await device.createComputePipelineAsync ({
      layout: device.createPipelineLayout ({ bindGroupLayouts: [layout] }),
      compute: { module, entryPoint: `tiny_kernel_${kernel.name}` },
    });
    return { pipeline, layout };
  }

  // Grid points go along x, as many groups as there may be, then along y.
  #newLaunch (launch, { pipeline, layout }) {
    const most = this.device.limits.maxComputeWorkgroupsPerDimension;
    const [x, y, z] = launch.grid;
    const groups = Math.ceil (x * y * z / this.model.kernels[launch.kernel].points);
    const width = Math.min (groups, most), height = Math.ceil (groups / width);
    if (height > most)
      throw new Error (`a kernel has ${groups} work-groups, more than this device runs`);
    const entries = launch.buffers.map ((b, binding) => ({ binding, resource: this.buffers[b] }));
    return { pipeline, group: this.device.createBindGroup ({ layout, entries }), width, height };
  }

  // Whole words; what follows the last byte is padding.
  #write (i, bytes) {
    const whole = new Uint8Array (this.buffers[i].size);
    whole.set (bytes);
    this.device.queue.writeBuffer (this.buffers[i].buffer, 0, whole);
  }

  #writeInputs (inputs) {
    for (const port of this.inputs) {
      const value = inputs[port.name], { bytes } = this.model.buffers[port.buffer];
      if (value === undefined)
        throw new Error (`the input “${port.name}” is missing`);
      if (!(value instanceof arrays[port.dtype]) || value.byteLength !== bytes)
        throw new Error (`the input “${port.name}” is to be a ${arrays[port.dtype].name} of ${bytes} bytes`);
      this.#write (port.buffer, new Uint8Array (value.buffer, value.byteOffset, value.byteLength));
    }
  }

  #runOnce (inputs) {
    return this.#checked (async () => {
      const { device, model, readback } = this;
      this.#writeInputs (inputs);
      const encoder = device.createCommandEncoder ();
      const pass = encoder.beginComputePass ();
      for (const launch of this.launches) {
        pass.setPipeline (launch.pipeline);
        pass.setBindGroup (0, launch.group);
        pass.dispatchWorkgroups (launch.width, launch.height);
      }
      pass.end ();
      let at = 0;
      const places = model.outputs.map ((port) => {
        const place = at, { buffer, offset, size } = this.buffers[port.buffer];
        encoder.copyBufferToBuffer (buffer, offset, readback, place, size);
        at += size;
        return place;
      });
      device.queue.submit ([encoder.finish ()]);
      await readback.mapAsync (GPUMapMode.READ);
      const bytes = readback.getMappedRange ().slice (0);
      readback.unmap ();
      return Object.fromEntries (model.outputs.map ((port, i) => [
        port.name,
        new arrays[port.dtype] (bytes.slice (places[i], places[i] + model.buffers[port.buffer].bytes)),
      ]));
    });
  }
}
