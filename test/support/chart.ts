import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { infraFile, type Manifest } from "./deployment.ts";

const CHART = join(import.meta.dir, "../../infra/helm/waybill");
/** Where Debian keeps the sources of Go libraries. */
const LIBRARIES = "/usr/share/gocode";

/** Why the chart cannot be rendered here; null: it can. */
export function whyNotRendered(): string | null {
  const wanted = ["Masterminds/sprig", "ghodss/yaml"].map((name) => join(LIBRARIES, "src/github.com", name));
  if (Bun.which("go") !== null && wanted.every((folder) => existsSync(folder))) return null;
  return "no Go with sprig: apt-get install golang-go golang-github-masterminds-sprig-dev golang-github-ghodss-yaml-dev";
}

/** Values of a chart: members by their names. */
export interface Values {
  readonly [name: string]: unknown;
}

export type Rendering =
  | { readonly manifests: readonly Manifest[]; readonly notes: string }
  | { readonly refusal: string };

/** Renders the chart with Helm's template language. `stop` removes the compiled program. */
export class ChartRenderer {
  private readonly folder = mkdtempSync(join(tmpdir(), "waybill-chart-"));
  private readonly program = join(this.folder, "render");

  start(): void {
    const env = { ...process.env, GO111MODULE: "off", GOPATH: LIBRARIES, GOCACHE: join(tmpdir(), "waybill-go-cache") };
    const source = join(import.meta.dir, "render-chart.go");
    const { success, stderr } = Bun.spawnSync(["go", "build", "-o", this.program, source], { env });
    if (!success) throw new Error(stderr.toString());
  }

  stop(): void {
    rmSync(this.folder, { recursive: true });
  }

  render(given: Values, release = "waybill"): Rendering {
    const values = merged(defaults(), given);
    const order = { folder: CHART, release, namespace: "messages", values };
    const { success, stdout, stderr } = Bun.spawnSync([this.program], { stdin: Buffer.from(JSON.stringify(order)) });
    if (!success) return { refusal: stderr.toString() };
    // The program writes the texts of templates by their names.
    const texts = JSON.parse(stdout.toString()) as Readonly<Record<string, string>>;
    const { "NOTES.txt": notes = "", ...templates } = texts;
    return { manifests: Object.entries(templates).flatMap(([file, text]) => parseDocuments(file, text)), notes };
  }
}

/** values.yaml, as Helm has it before any value is given. */
export function defaults(): Values {
  // The test of the schema checks it.
  return Bun.YAML.parse(infraFile("helm/waybill/values.yaml")) as Values;
}

/** Merges as Helm does: maps by their members, everything else as a whole. */
function merged(base: Values, over: Values): Values {
  const both = Object.entries(over).map(([name, value]) => {
    const former = base[name];
    return [name, isMap(former) && isMap(value) ? merged(former, value) : value];
  });
  return { ...base, ...Object.fromEntries(both) };
}

function isMap(value: unknown): value is Values {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function parseDocuments(file: string, text: string): readonly Manifest[] {
  const parsed: unknown = Bun.YAML.parse(text);
  // The test of the types checks them. An empty document is null.
  const documents = (Array.isArray(parsed) ? parsed : [parsed]) as (Omit<Manifest, "file"> | null)[];
  return documents.flatMap((document) => (document === null ? [] : [{ ...document, file } as Manifest]));
}
