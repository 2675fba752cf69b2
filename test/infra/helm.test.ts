import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Ajv from "ajv";
import { readDocument } from "../../infra/api-document.ts";
import { version } from "../../package.json";
import { loadConfig } from "../../src/config/config.ts";
import { SETTINGS } from "../../src/config/settings.ts";
import { ChartRenderer, defaults, parseDocuments, type Values, whyNotRendered } from "../support/chart.ts";
import { infraFile, kubernetesProcesses, type Manifest, manifests, readRoute } from "../support/deployment.ts";
import { findTypeErrors } from "../support/manifest-types.ts";

const KEY = Buffer.alloc(32, 7).toString("base64");
const SECRETS = { MASTER_KEY: KEY, OPERATOR_TOKEN: KEY, WEBHOOK_SECRET: KEY };
const STORES = {
  redis: { url: "rediss://:secret@redis.example.com:6379" },
  database: { url: "postgres://waybill:secret@postgres.example.com:5432/waybill" },
  clickhouse: { url: "https://clickhouse.example.com:8443" },
};
const LEAST: Values = { secret: { values: SECRETS }, stores: STORES };
/** Everything that is off by default. */
const MOST: Values = {
  ...LEAST,
  imagePullSecrets: [{ name: "registry" }],
  roles: {
    dispatcher: { autoscaling: { kind: "keda" } },
    recorder: { autoscaling: { kind: "hpa", min: 2, max: 4, cpuPercent: 80 } },
    smtp: { enabled: true, tlsSecret: "smtp-tls" },
    maillog: { storage: { className: "fast" } },
  },
  monitoring: {
    serviceMonitor: { enabled: true, labels: { release: "prometheus" }, tokenSecret: "waybill" },
    prometheusRule: { enabled: true },
  },
  podAnnotations: { "example.com/team": "mail" },
  nodeSelector: { disk: "ssd" },
  tolerations: [{ key: "mail", operator: "Exists" }],
  priorityClassName: "high",
};
const EXAMPLES = ["postgresql.yaml", "clickhouse.yaml", "valkey.yaml"];

// Helm's own program is in no package of Debian 12 and npm. Its language is Go's, and Debian has that.
const why = whyNotRendered();
const note = why === null ? "" : ` (skipped: ${why})`;
const chart = new ChartRenderer();

function render(values: Values, release?: string): readonly Manifest[] {
  const rendered = chart.render(values, release);
  if ("refusal" in rendered) throw new Error(rendered.refusal);
  return rendered.manifests;
}

function find(all: readonly Manifest[], kind: string, name: string): Manifest {
  const found = all.find((one) => one.kind === kind && one.metadata.name === name);
  if (found === undefined) throw new Error(`no ${kind} ${name}`);
  return found;
}

describe.skipIf(why !== null)(`the chart${note}`, () => {
  beforeAll(() => chart.start(), 300_000);
  afterAll(() => chart.stop());

  test.each([
    ["the least values", LEAST],
    ["everything on", MOST],
    ["a Secret of one's own", { secret: { existing: "mine" } }],
    [
      "no mail server of its own",
      { ...LEAST, roles: { maillog: { enabled: false } }, config: { SMTP_URL: "smtp://mail:25" } },
    ],
  ])(
    "has the types of Kubernetes and its operators with %s",
    (_, values) => {
      const all = render(values);
      expect(findTypeErrors(all)).toEqual([]);
      const names = all.map(({ apiVersion, kind, metadata }) => `${apiVersion} ${kind} ${metadata.name}`);
      expect(new Set(names).size).toBe(names.length);
    },
    300_000,
  );

  test("has every role, with an environment that is a configuration", () => {
    const processes = kubernetesProcesses(render(MOST));
    const roles = processes.map(({ environment }) => environment["ROLES"] ?? "");
    expect(roles.toSorted()).toEqual(["api", "dispatcher", "maillog", "recorder", "smtp"]);
    const known = new Set<string>(Object.values(SETTINGS).map(({ name }) => name));
    known.add("BUN_RUNTIME_TRANSPILER_CACHE_PATH");
    const home = mkdtempSync(join(tmpdir(), "waybill-chart-home-"));
    try {
      for (const { environment } of processes) {
        expect(Object.keys(environment).filter((name) => !known.has(name))).toEqual([]);
        // The certificate is in a Secret of the cluster.
        const { SMTP_TLS_CERT: _cert, SMTP_TLS_KEY: _key, ...here } = environment;
        const config = loadConfig({ ...here, WAYBILL_HOME: home });
        expect(config.providers).toBe("live");
        expect([config.redis, config.databaseUrl, config.clickhouseUrl].includes(null)).toBe(false);
      }
    } finally {
      rmSync(home, { recursive: true });
    }
  });

  test("probes and ends its processes as infra/kubernetes does", () => {
    const ours = render(LEAST);
    for (const { kind, metadata, spec } of manifests()) {
      if (kind !== "Deployment" && kind !== "StatefulSet") continue;
      const pod = find(ours, kind, `waybill-${metadata.name}`)["spec"].template.spec;
      expect(pod.terminationGracePeriodSeconds).toBe(spec.template.spec.terminationGracePeriodSeconds);
      const container = (one: typeof pod) => one.containers.find(({ name }: { name: string }) => name === "waybill");
      const [here, there] = [container(pod), container(spec.template.spec)];
      for (const member of [
        "startupProbe",
        "livenessProbe",
        "readinessProbe",
        "lifecycle",
        "securityContext",
        "volumeMounts",
      ]) {
        expect([metadata.name, member, here[member]]).toEqual([metadata.name, member, there[member]]);
      }
      expect(here.resources).toEqual(there.resources);
    }
    const services = ours.filter(({ kind }) => kind === "Service").map(({ metadata }) => metadata.name);
    for (const { kind, metadata } of manifests()) {
      if (kind === "Service") expect(services).toContain(`waybill-${metadata.name}`);
    }
  });

  test("its route passes on what the gateway of infra/kubernetes does", async () => {
    const ours = readRoute([find(render(LEAST), "HTTPRoute", "waybill")]);
    const theirs = readRoute([find(manifests(), "HTTPRoute", "api")]);
    const { paths } = await readDocument();
    for (const path of Object.keys(paths)) expect([path, ours(path)]).toEqual([path, theirs(path)]);
    expect(ours("/dash")).toBe(false);
  });

  test("dispatchers scale by the age of what waits for its turn alone", () => {
    const all = render(MOST);
    const { spec } = find(all, "ScaledObject", "waybill-dispatcher");
    expect(spec.triggers[0].metadata).toMatchObject({
      query: 'max(waybill_queue_oldest_age_seconds{waits="turn", namespace="messages"})',
      threshold: "60",
    });
    expect(infraFile("prometheus/alerts.yaml")).toContain('waybill_queue_oldest_age_seconds{waits="turn"}');
    // Else each roll-out would undo what the scaler has set.
    expect(find(all, "Deployment", "waybill-dispatcher")["spec"]).not.toHaveProperty("replicas");
    expect(find(render(LEAST), "Deployment", "waybill-dispatcher")["spec"].replicas).toBe(2);
  });

  test("Prometheus gets the shipped alerts, the job that they ask for, and every process", () => {
    const all = render(MOST);
    expect(find(all, "PrometheusRule", "waybill")["spec"]).toEqual(Bun.YAML.parse(infraFile("prometheus/alerts.yaml")));
    const { spec } = find(all, "ServiceMonitor", "waybill");
    const service = find(all, "Service", "waybill-metrics");
    const labels = service.metadata.labels ?? {};
    expect(labels).toMatchObject(spec.selector.matchLabels);
    expect(labels[spec.jobLabel]).toBe("waybill");
    expect(spec.endpoints[0].port).toBe(service["spec"].ports[0].name);
    for (const { kind, spec: of } of all) {
      if (kind !== "Deployment" && kind !== "StatefulSet") continue;
      expect(of.template.metadata.labels).toMatchObject(service["spec"].selector);
    }
  });

  test("every policy, Service and budget selects pods that there are", () => {
    const all = render(MOST, "blue");
    const pods = all.flatMap(({ spec }) => (spec?.template?.metadata ? [spec.template.metadata.labels] : []));
    const selectors = all.flatMap(({ kind, spec }) => {
      if (kind === "Service") return [spec.selector];
      if (kind === "NetworkPolicy") return [spec.podSelector.matchLabels];
      return kind === "PodDisruptionBudget" ? [spec.selector.matchLabels] : [];
    });
    expect(selectors.length).toBeGreaterThan(10);
    for (const selector of selectors) {
      const isSelected = (labels: Readonly<Record<string, string>>) =>
        Object.entries(selector).every(([name, value]) => labels[name] === value);
      expect([selector, pods.some(isSelected)]).toEqual([selector, true]);
    }
  });

  test("what runs before an installation needs nothing that comes with it", () => {
    const hooks = render(LEAST).filter(({ file }) => file === "migrate.yaml");
    expect(hooks.map(({ kind }) => kind)).toEqual(["ConfigMap", "Secret", "Job"]);
    for (const { metadata } of hooks) {
      expect(metadata).toHaveProperty(["annotations", "helm.sh/hook"], "pre-install,pre-upgrade");
    }
    const names = hooks.slice(0, 2).map(({ metadata }) => metadata.name);
    const from: readonly object[] = find(hooks, "Job", "waybill-migrate")["spec"].template.spec.containers[0].envFrom;
    expect(from).toEqual([{ configMapRef: { name: names[0] } }, { secretRef: { name: names[1] } }]);
  });

  test("secrets are in no ConfigMap, and a Secret of one's own is not copied", () => {
    const maps = render(LEAST).filter(({ kind }) => kind === "ConfigMap");
    expect(JSON.stringify(maps)).not.toContain("secret@");
    const own = render({ secret: { existing: "mine" } });
    expect(own.filter(({ kind }) => kind === "Secret")).toEqual([]);
    expect(JSON.stringify(own)).toContain('{"secretRef":{"name":"mine"}}');
  });

  test("the examples' stores have the names that their values ask for", () => {
    const values = Bun.YAML.parse(infraFile("helm/examples/values.yaml")) as Values;
    const all = render(values);
    expect(findTypeErrors(all)).toEqual([]);
    const stores = EXAMPLES.flatMap((file) => parseDocuments(file, infraFile(`helm/examples/${file}`)));
    const secrets = new Map(
      stores.flatMap(({ kind, metadata, ...rest }) => (kind === "Secret" ? [[metadata.name, rest["stringData"]]] : [])),
    );
    // CloudNativePG's own.
    const cluster = stores.find(({ apiVersion }) => apiVersion.startsWith("postgresql.cnpg.io/"));
    secrets.set(`${cluster?.metadata.name}-app`, { uri: "" });
    const asked = find(all, "Deployment", "waybill-api")["spec"].template.spec.containers[0].env;
    const keys = asked.flatMap(({ valueFrom }: { valueFrom?: { secretKeyRef: { name: string; key: string } } }) =>
      valueFrom === undefined ? [] : [valueFrom.secretKeyRef],
    );
    expect(keys).toHaveLength(3);
    for (const { name, key } of keys)
      expect([name, Object.keys(secrets.get(name) ?? {})]).toEqual([name, expect.arrayContaining([key])]);
    const clickhouse = stores.find(({ kind }) => kind === "ClickHouseInstallation");
    expect(find(all, "Secret", "waybill")["stringData"].CLICKHOUSE_URL).toBe(
      `http://clickhouse-${clickhouse?.metadata.name}:8123`,
    );
    expect(findTypeErrors(stores.filter(({ apiVersion }) => !/cnpg|altinity/.test(apiVersion)))).toEqual([]);
  }, 300_000);

  test.each([
    ["secret.values.MASTER_KEY should be set", { stores: STORES }],
    ["stores.redis should have url or secret", { ...LEAST, stores: { ...STORES, redis: {} } }],
    [
      "stores.redis should have either url or secret",
      { ...LEAST, stores: { ...STORES, redis: { url: "redis://a", secret: { name: "b", key: "c" } } } },
    ],
    [
      "the Secret b that has REDIS_URL should have a key",
      { ...LEAST, stores: { ...STORES, redis: { secret: { name: "b" } } } },
    ],
    ["config.SMTP_URL should name your mail server", { ...LEAST, roles: { maillog: { enabled: false } } }],
    ["roles.smtp.tlsSecret should name a Secret", { ...LEAST, roles: { smtp: { enabled: true } } }],
    [
      "roles.api.autoscaling.kind should be none, hpa or keda",
      { ...LEAST, roles: { api: { autoscaling: { kind: "vpa" } } } },
    ],
    ["roles.dispatcher should have at most config.SHARDS (16)", { ...LEAST, roles: { dispatcher: { replicas: 17 } } }],
    [
      "roles.dispatcher should have at most config.SHARDS (4)",
      { ...LEAST, config: { SHARDS: "4" }, roles: { dispatcher: { autoscaling: { kind: "hpa" } } } },
    ],
  ] as [string, Values][])("refuses with the sentence: %s", (sentence, values) => {
    expect(chart.render(values)).toEqual({ refusal: expect.stringContaining(sentence) });
  });

  test("an installation says how the first tenant is made", () => {
    const rendered = chart.render(LEAST);
    expect(rendered).toHaveProperty(
      "notes",
      expect.stringContaining("exec deploy/waybill-api -- bun src/main.ts tenant create"),
    );
  });

  test("names stay short enough, however long the release's is", () => {
    for (const { metadata } of render(MOST, "a-release-whose-name-is-as-long-as-helm-allows-53chars")) {
      expect([metadata.name, metadata.name.length <= 63]).toEqual([metadata.name, true]);
    }
  });
});

describe("the chart's values", () => {
  const fits = new Ajv({ strict: false }).compile(JSON.parse(infraFile("helm/waybill/values.schema.json")));

  test("fit their schema, and a mistyped name does not", () => {
    for (const values of [defaults(), LEAST, MOST, Bun.YAML.parse(infraFile("helm/examples/values.yaml"))]) {
      expect([fits(values), fits.errors ?? []]).toEqual([true, []]);
    }
    expect(fits({ roles: { dispatchers: { replicas: 3 } } })).toBe(false);
    expect(fits({ config: { "public-url": "https://send.example.com" } })).toBe(false);
  });

  test("are settings by their names", () => {
    const known = new Set<string>(Object.values(SETTINGS).map(({ name }) => name));
    const config: object = defaults()["config"] ?? {};
    expect(Object.keys(config).filter((name) => !known.has(name))).toEqual([]);
  });
});

test("the chart is of this version, and the image's tag follows it", () => {
  expect(Bun.YAML.parse(infraFile("helm/waybill/Chart.yaml"))).toMatchObject({ version, appVersion: version });
  expect(infraFile("helm/waybill/files/alerts.yaml")).toBe(infraFile("prometheus/alerts.yaml"));
});
