import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmod, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../support/command.ts";
import { composeProcesses, composeSettings, type Environment, infraFile } from "../support/deployment.ts";
import { eventually } from "../support/eventually.ts";
import { freePort } from "../support/free-port.ts";
import { createPostgres, type PostgresServer, postgresMissing } from "../support/postgres.ts";
import { openClickHouse, type PrivateClickHouse } from "../support/private-clickhouse.ts";
import { type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";
import { startWaybill, type Waybill } from "../support/waybill.ts";

const ROOT = join(import.meta.dir, "../..");
const HTML = { to_address: "ann@example.com", subject: "Hi", html: "<p>Your order is on its way.</p>" };
const settings = composeSettings();
const processes = composeProcesses(settings);

/** redis-server as the container starts it, with that container's configuration and password. */
async function startComposeRedis(folder: string) {
  const port = await freePort();
  const configuration = join(folder, "redis.conf");
  const script = join(folder, "start-redis");
  const here = infraFile("compose/redis/redis.conf")
    .replace("dir /data", `dir ${folder}`)
    .replace(/^bind .*$/m, `bind 127.0.0.1\nport ${port}`);
  await Bun.write(configuration, here);
  await Bun.write(script, infraFile("compose/redis/start-redis").replace("/etc/redis/redis.conf", configuration));
  const password = settings["REDIS_PASSWORD"] ?? "";
  const server = Bun.spawn(["sh", script], {
    env: { PATH: process.env["PATH"], REDIS_PASSWORD: password },
    stdout: "ignore",
    stderr: "ignore",
  });
  return { url: `redis://:${password}@127.0.0.1:${port}`, server };
}

const missing = postgresMissing();

describe.skipIf(missing !== null)(
  `the containers of compose.yaml${missing === null ? "" : ` (skipped: ${missing})`}`,
  () => {
    let folder: string;
    let redis: Awaited<ReturnType<typeof startComposeRedis>>;
    let postgres: PostgresServer;
    let clickhouse: PrivateClickHouse;
    let sink: SmtpSink;
    const running = new Map<string, Waybill>();

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), "waybill-containers-"));
      clickhouse = await openClickHouse(join(folder, "clickhouse"));
      [redis, postgres, sink] = await Promise.all([startComposeRedis(folder), createPostgres(), startSmtpSink()]);
    }, 300_000);

    afterAll(async () => {
      for (const waybill of running.values()) await waybill.kill();
      await sink?.stop();
      redis?.server.kill("SIGKILL");
      await clickhouse?.close();
      await postgres?.remove();
      await rm(folder, { recursive: true, force: true });
    }, 90_000);

    /** The container's environment, with the addresses of this machine. */
    function here(environment: Environment): Environment {
      const { REDIS_URL, DATABASE_URL, CLICKHOUSE_URL } = environment;
      // The URL contains the password that the server was started with.
      expect(REDIS_URL).toBe(redis.url.replace(/127.*/, "redis:6379"));
      expect([DATABASE_URL, CLICKHOUSE_URL]).not.toContain(undefined);
      return {
        ...environment,
        REDIS_URL: redis.url,
        DATABASE_URL: postgres.url,
        CLICKHOUSE_URL: clickhouse.address.url,
        CLICKHOUSE_USER: clickhouse.address.user,
        CLICKHOUSE_PASSWORD: clickhouse.address.password,
        SMTP_URL: sink.url,
        HOST: "127.0.0.1",
        PORT: "0",
        METRICS_HOST: "127.0.0.1",
        METRICS_PORT: "0",
        ...(environment["MAIL_LOG"] === undefined ? {} : { MAIL_LOG: join(folder, "maillog") }),
      };
    }

    test("are migrated, start, deliver what the API accepted, write it down, and end in order", async () => {
      await Bun.write(join(folder, "maillog"), "");
      // Like a volume of Kubernetes: writable, with another owner.
      const volume = join(folder, "volume");
      await mkdir(volume);
      await chmod(volume, 0o777);
      const [first] = processes;
      const commands = { ...here(first?.environment ?? {}), WAYBILL_HOME: join(volume, "home") };
      expect(await runCommand(["migrate"], commands)).toMatchObject({ code: 0 });
      const { output } = await runCommand(["check"], commands);
      expect(output).toMatch(/^Redis: answers \(one server, Redis [\d.]+\)$/m);
      expect(output).not.toContain("warning");
      for (const part of ["PostgreSQL", "ClickHouse"])
        expect(output).toContain(`${part}: answers, with the current schema`);
      expect(output).toContain("mail server: takes connections");
      expect(output).toContain("data folder: not used");

      await Promise.all(
        processes.map(async ({ place, environment }) => {
          const home = join(volume, place);
          running.set(place, await startWaybill(home, { ...here(environment), WAYBILL_HOME: home }));
        }),
      );
      const [api, other] = ["compose api-1", "compose api-2"].map((place) => running.get(place));
      if (api === undefined || other === undefined) throw new Error("there is no API");
      expect(api.screen).not.toContain("demo");
      for (const { url } of running.values()) {
        const asked = Bun.spawnSync([process.execPath, join(ROOT, "infra/health.ts")], {
          env: { PORT: new URL(url).port },
        });
        expect(asked.exitCode).toBe(0);
      }

      const created = await runCommand(
        ["tenant", "create", "First", "--id", "first", "--permissions", "allow_raw_html"],
        commands,
      );
      expect(created).toMatchObject({ code: 0 });
      const { api_key: key } = JSON.parse((await runCommand(["key", "create", "first"], commands)).output);
      const accepted = await eventually("the API knows the key", async () => {
        const answer = await api.request(key, "POST", "/v1/send/email", HTML);
        return answer.status === 202 ? answer : null;
      });
      await eventually("the history says so, whichever process is asked", async () => {
        const { body } = await other.request(key, "GET", `/v1/jobs/${accepted.body.job_id}/events`);
        return body.events?.some((event: { event_type: string }) => event.event_type === "sent");
      });
      expect(sink.received.size).toBe(1);

      expect(await Promise.all(Array.from(running.values(), (waybill) => waybill.stop()))).toEqual(Array(5).fill(0));
      running.clear();
    }, 300_000);
  },
);

test("infra/health.ts says so where nobody answers", () => {
  const { exitCode } = Bun.spawnSync([process.execPath, join(ROOT, "infra/health.ts")], { env: { PORT: "9" } });
  expect(exitCode).toBe(1);
});
