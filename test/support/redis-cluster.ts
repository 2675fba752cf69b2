import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { cutTornTail } from "../../src/storage/redis/torn-tail.ts";
import { eventually } from "./eventually.ts";
import { freePort } from "./free-port.ts";

/** How long a node may be silent before the others fail over. */
const NODE_TIMEOUT_MS = 1_500;

export interface ClusterNode {
  readonly port: number;
  readonly client: Redis;
  /** Ends the process at once. Data it has sent still arrives, because the machine keeps running. */
  kill(): Promise<void>;
  /** Stops the process until `resume`. */
  pause(): void;
  resume(): void;
  /** Starts it again on the same files. */
  restart(): Promise<void>;
}

export interface RedisCluster {
  /** The seeds, as in REDIS_URL. */
  readonly url: string;
  readonly nodes: readonly ClusterNode[];
  /** The nodes that own slots, according to the first node that answers. */
  masters(): Promise<readonly ClusterNode[]>;
  /** The replicas of this master. */
  findReplicas(master: ClusterNode): Promise<readonly ClusterNode[]>;
  /** Waits until each of three masters has a replica that follows it. */
  isWhole(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * A Redis Cluster on this machine: the given number of masters, each with a replica, append-only and synced at every
 * write.
 */
export async function startRedisCluster(masters = 3, settings: readonly string[] = []): Promise<RedisCluster> {
  const folder = await mkdtemp(join(tmpdir(), "waybill-cluster-"));
  const nodes: ClusterNode[] = [];
  const stop = async () => {
    for (const node of nodes) {
      node.client.disconnect();
      await node.kill();
    }
    await rm(folder, { recursive: true, force: true });
  };
  try {
    for (let i = 0; i < 2 * masters; i += 1) nodes.push(await startNode(join(folder, String(i)), settings));
    const places = nodes.map(({ port }) => `127.0.0.1:${port}`);
    await run(["redis-cli", "--cluster", "create", ...places, "--cluster-replicas", "1", "--cluster-yes"]);
    const cluster = createCluster(nodes, masters, stop);
    await cluster.isWhole();
    return cluster;
  } catch (error) {
    await stop();
    throw error;
  }
}

function createCluster(nodes: readonly ClusterNode[], count: number, stop: () => Promise<void>): RedisCluster {
  const table = async () => {
    const replies = nodes.map(async ({ client }) => parseNodes(String(await client.call("CLUSTER", "NODES"))));
    return await Promise.any(replies);
  };
  const nodeAt = (port: number) => nodes.filter((node) => node.port === port);
  return {
    url: nodes.map(({ port }) => `redis://127.0.0.1:${port}`).join(","),
    nodes,
    async masters() {
      return (await table()).filter((row) => row.isMaster && row.hasSlots).flatMap((row) => nodeAt(row.port));
    },
    async findReplicas(master) {
      const rows = await table();
      const id = rows.find((row) => row.port === master.port)?.id;
      return rows.filter((row) => row.masterId === id && !row.hasFailed).flatMap((row) => nodeAt(row.port));
    },
    async isWhole() {
      await eventually("the cluster is whole", () => isWhole(nodes, count), 30_000);
    },
    stop,
  };
}

/** Whether all nodes agree that all slots are served, and every master's replica is up to date. */
async function isWhole(nodes: readonly ClusterNode[], count: number): Promise<boolean> {
  const looks = nodes.map(async ({ client }) => {
    const info = String(await client.call("CLUSTER", "INFO"));
    const replication = await client.info("replication");
    const isMaster = replication.includes("role:master");
    const isLinked = isMaster
      ? /slave0:.*state=online/.test(replication)
      : replication.includes("master_link_status:up");
    return { isOk: info.includes("cluster_state:ok") && isLinked, isMaster };
  });
  const seen = await Promise.all(looks).catch(() => []);
  const masters = seen.filter(({ isMaster }) => isMaster).length;
  return seen.length > 0 && masters === count && seen.every(({ isOk }) => isOk);
}

interface NodeRow {
  readonly id: string;
  readonly port: number;
  readonly isMaster: boolean;
  readonly hasFailed: boolean;
  readonly masterId: string;
  readonly hasSlots: boolean;
}

/** `<id> <host>:<port>@<bus port> <flags> <master id> … <slots>` */
function parseNodes(text: string): readonly NodeRow[] {
  return text
    .trim()
    .split("\n")
    .map((line) => {
      const [id = "", place = "", flags = "", masterId = "", , , , , ...slots] = line.split(" ");
      const port = Number(/:(\d+)/.exec(place)?.[1]);
      const hasFailed = flags.split(",").includes("fail");
      return { id, port, isMaster: flags.includes("master"), hasFailed, masterId, hasSlots: slots.length > 0 };
    });
}

async function startNode(folder: string, settings: readonly string[]): Promise<ClusterNode> {
  await mkdir(folder);
  // The nodes' own port is 10,000 higher by default: in the range of ephemeral ports.
  const [port, busPort] = [await freePort(), await freePort()];
  const spawn = () =>
    Bun.spawn(
      // biome-ignore format: a command line
      ["redis-server", "--port", String(port), "--bind", "127.0.0.1", "--dir", folder, "--cluster-enabled", "yes",
        "--cluster-port", String(busPort), "--cluster-node-timeout", String(NODE_TIMEOUT_MS),
        "--appendonly", "yes", "--appendfsync", "always", "--aof-load-truncated", "no",
        "--save", "", ...settings],
      { stdout: "ignore", stderr: "ignore" },
    );
  let server = spawn();
  const client = new Redis({ host: "127.0.0.1", port, retryStrategy: () => 50, commandTimeout: 1_000 });
  client.on("error", () => {});
  const isUp = () =>
    client.ping().then(
      (reply) => reply === "PONG",
      () => false,
    );
  await eventually("a node answers", isUp);
  return {
    port,
    client,
    async kill() {
      server.kill("SIGKILL");
      await server.exited;
    },
    pause: () => server.kill("SIGSTOP"),
    resume: () => server.kill("SIGCONT"),
    async restart() {
      await cutTornTail(folder);
      server = spawn();
      await eventually("a node answers again", isUp);
    },
  };
}

async function run(command: readonly string[]): Promise<void> {
  const child = Bun.spawn([...command], { stdout: "pipe", stderr: "pipe" });
  const [output, code] = await Promise.all([child.stdout.text(), child.exited]);
  if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}: ${output}`);
}
