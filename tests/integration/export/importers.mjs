// node importers.mjs MODULES FILE...: reads exports by the libraries of others in the npm
// directory MODULES, and prints what they found as JSON: {"FILE": {"importer": "...", "profiles":
// [{"name", "self": {function: weight}, "total": {function: weight}}]}}.
//
// speedscope has no library: its importers are taken out of the page's program, which runs
// without a page, up to where it would draw itself.
import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";
import vm from "node:vm";
import zlib from "node:zlib";

const [modules, ...files] = process.argv.slice(2);

function loadSpeedscope() {
  const directory = path.join(modules, "speedscope/dist/release");
  const program = fs.readdirSync(directory).find((name) => /^speedscope-.*\.js$/.test(name));
  const code = fs.readFileSync(path.join(directory, program), "utf8");
  const importer = /await ([\w$]+)\(\w+,await \w+\.arrayBuffer\(\)\)/.exec(code)[1];
  const drawing = code.lastIndexOf("console.log(`speedscope v");
  // Stands in for every part of the page that the program touches while it is loaded.
  const anything = new Proxy(function () {}, {
    get: (_, key) => (key === Symbol.toPrimitive ? () => "" : anything),
    apply: () => anything,
    construct: () => anything,
  });
  const complaints = [];
  const note = (text) => complaints.push(String(text));
  const page = {
    console: { log: note, warn: note, error: note, info: note },
    TextDecoder, TextEncoder, URL, URLSearchParams, Uint8Array, DataView, ArrayBuffer,
    setTimeout, clearTimeout, performance, atob,
    document: anything, navigator: { platform: "" }, location: { hash: "", protocol: "file:" },
    localStorage: { getItem: () => null, setItem() {} },
    matchMedia: () => ({ matches: false, addListener() {}, addEventListener() {} }),
    requestAnimationFrame() {}, addEventListener() {},
  };
  page.window = page.self = page.globalThis = page;
  vm.createContext(page);
  vm.runInContext(`${code.slice(0, drawing)}globalThis.importProfiles=${importer};})();`, page);
  return { importProfiles: page.importProfiles, complaints };
}

async function bySpeedscope(speedscope, file) {
  const data = fs.readFileSync(file);
  const bytes = data.buffer.slice(data.byteOffset, data.byteOffset + data.length);
  speedscope.complaints.length = 0;
  const group = await speedscope.importProfiles(path.basename(file), bytes);
  if (!group) throw new Error(`speedscope does not know ${file}`);
  const profiles = group.profiles.map((profile) => {
    const self = {};
    const total = {};
    profile.forEachFrame((frame) => {
      self[frame.name] = frame.getSelfWeight();
      total[frame.name] = frame.getTotalWeight();
    });
    return { name: profile.getName(), unit: profile.getWeightUnit(), self, total };
  });
  return { importer: "speedscope", complaints: [...speedscope.complaints], profiles };
}

function byPprofFormat(file) {
  const { Profile } = createRequire(path.resolve(modules, "x"))("pprof-format");
  const profile = Profile.decode(zlib.gunzipSync(fs.readFileSync(file)));
  const text = (id) => profile.stringTable.strings[Number(id)];
  const byId = (list) => new Map(list.map((entry) => [Number(entry.id), entry]));
  const functions = byId(profile.function);
  const locations = byId(profile.location);
  const self = {};
  for (const sample of profile.sample) {
    const leaf = locations.get(Number(sample.locationId[0]));
    const name = text(functions.get(Number(leaf.line[0].functionId)).name);
    const values = sample.value.map(Number);
    self[name] = (self[name] ?? values.map(() => 0)).map((sum, i) => sum + values[i]);
  }
  return { importer: "pprof-format", types: profile.sampleType.map((t) => text(t.type)), self };
}

const speedscope = loadSpeedscope();
const found = {};
for (const file of files) {
  found[file] = [await bySpeedscope(speedscope, file)];
  if (file.endsWith(".pprof")) found[file].push(byPprofFormat(file));
}
console.log(JSON.stringify(found));
