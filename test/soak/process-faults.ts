import { writeFileSync } from "node:fs";
import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Dice } from "../simulation/dice.ts";
import { runCommand } from "../support/command.ts";
import { type FaultKind, LEASE_MS, lasting } from "./fault.ts";
import type { Service } from "./service.ts";
import { serviceEnvironment } from "./service-environment.ts";
import type { SoakWorld } from "./soak-world.ts";

const HOUR_MS = 3_600_000;
const BACKUPS_KEPT = 2;
/** Together longer than the longest fault of a store. */
const ROTATE_TRIES = 8;
const ROTATE_AGAIN_MS = 4_000;

/** Faults of Waybill's own processes, and operators' actions on them. */
export const processFaults: readonly FaultKind[] = [
  { name: "kill-main", weight: 6, group: "process", run: killMain },
  { name: "kill-child", weight: 8, group: "process", isPossible: isSpread, run: killChild },
  { name: "kill-side", weight: 4, group: "process", isPossible: ({ side }) => side !== null, run: killSide },
  { name: "pause-process", weight: 8, group: "process", run: pauseProcess },
  { name: "rolling-restart", weight: 4, group: "process", run: rollingRestart },
  { name: "end-child", weight: 3, group: "process", isPossible: isSpread, run: endChild },
  { name: "rotate-keys", weight: 2, group: "process", run: rotateKeys },
  { name: "clock-step", weight: 6, group: "process", run: stepClock },
  { name: "backup", weight: 3, group: "process", isPossible: ({ stores }) => stores.servers === null, run: backUp },
];

function isSpread({ options }: SoakWorld): boolean {
  return options.processes !== "1";
}

async function killMain({ faults, service }: SoakWorld): Promise<void> {
  faults.at("kill -9", "main", "died");
  await service.kill();
}

async function killSide({ faults, side }: SoakWorld): Promise<void> {
  faults.at("kill -9", "second start", "died");
  await side?.kill();
}

function pickChild(service: Service, dice: Dice): readonly [name: string, pid: number] | null {
  const children = Array.from(service.processes()).filter(([name]) => name !== "main" && name !== "redis");
  return children.length === 0 ? null : dice.pick(children);
}

async function killChild({ faults, service }: SoakWorld, dice: Dice): Promise<void> {
  const child = pickChild(service, dice);
  if (child === null) return;
  faults.at("kill -9", child[0], "died");
  signal(child[1], "SIGKILL");
}

async function endChild({ faults, service }: SoakWorld, dice: Dice): Promise<void> {
  const child = pickChild(service, dice);
  if (child === null) return;
  faults.at("SIGTERM", child[0]);
  signal(child[1], "SIGTERM");
}

/** SIGSTOP: the process exists and keeps its connections, but stays silent. */
async function pauseProcess(world: SoakWorld, dice: Dice): Promise<void> {
  const processes = Array.from(world.service.processes());
  if (processes.length === 0) return;
  const [name, pid] = dice.pick(processes);
  const ms = dice.chance(0.1) ? 35_000 : dice.between(500, 15_000);
  const isAlone = name !== "redis" && (isSpread(world) || world.side !== null);
  await lasting(world, {
    kind: "SIGSTOP",
    target: name,
    ms,
    // A child that is silent for half a minute is killed and replaced.
    excuse: isAlone && ms > LEASE_MS ? "cut_off" : null,
    begin: () => signal(pid, "SIGSTOP"),
    end: () => signal(pid, "SIGCONT"),
  });
}

async function rollingRestart({ faults, service, side, book }: SoakWorld): Promise<void> {
  for (const one of [service, side]) {
    if (one === null) continue;
    const span = faults.begin("rolling restart", one.name);
    const code = await one.restart();
    faults.end(span);
    if (code !== 0) book.misdeed("a program that is told to end does so in order", `${one.name} ended with ${code}`);
  }
}

/**
 * A new first key for secrets and links, a new secret for callbacks, a restart, and the command that re-encrypts all
 * secrets.
 */
async function rotateKeys(world: SoakWorld): Promise<void> {
  const { keys, faults, service, side, book } = world;
  const fresh = () => Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64");
  keys.masterKeys = [fresh(), ...keys.masterKeys];
  keys.webhookSecrets = [fresh(), ...keys.webhookSecrets];
  const span = faults.begin("key rotation", "all processes");
  for (const one of [service, side]) await one?.restart();
  const environment = { ...serviceEnvironment(world), WAYBILL_HOME: world.stores.home };
  let sealed = await runCommand(["rotate-keys"], environment);
  // The registry may be away, or its disk full: the operator then tries again.
  for (let tries = 1; sealed.code !== 0 && tries < ROTATE_TRIES; tries += 1) {
    await Bun.sleep(ROTATE_AGAIN_MS);
    sealed = await runCommand(["rotate-keys"], environment);
  }
  faults.end(span);
  const { code, errors } = sealed;
  if (code !== 0)
    book.misdeed("an operator's command works beside the server", `rotate-keys ended with ${code}: ${errors}`);
}

/** The wall clock of all processes or of one is wrong for a while. */
async function stepClock(world: SoakWorld, dice: Dice): Promise<void> {
  const names = Array.from(world.service.processes().keys()).filter((name) => name !== "redis");
  if (names.length === 0) return;
  const stepped = dice.chance(0.5) ? names : [dice.pick(names)];
  const shiftMs = (dice.chance(0.5) ? 1 : -1) * dice.between(2_000, HOUR_MS);
  const write = (shifts: object) => writeFileSync(world.clockFile, JSON.stringify(shifts));
  await lasting(world, {
    kind: "clock step",
    target: `${stepped.join(", ")} by ${Math.round(shiftMs / 1_000)} s`,
    ms: dice.between(5_000, 30_000),
    shiftMs,
    begin: () => write(Object.fromEntries(stepped.map((name) => [name, shiftMs]))),
    end: () => write({}),
  });
}

/** A backup beside the running server. The last ones are kept, for a restore at the end. */
async function backUp({ faults, folder, stores, book }: SoakWorld): Promise<void> {
  const backups = join(folder, "backups");
  await mkdir(backups, { recursive: true });
  const span = faults.begin("backup", "all stores");
  const { code, errors } = await runCommand(["backup", `${backups}/`], { WAYBILL_HOME: stores.home });
  faults.end(span);
  span.note = code === 0 ? "" : `failed: ${errors.trim()}`;
  if (code !== 0 && !/disk|space|not running|no answer/i.test(errors)) {
    book.misdeed("an operator's command works beside the server", `backup ended with ${code}: ${errors}`);
  }
  const files = (await readdir(backups)).filter((name) => name.startsWith("waybill-")).sort();
  for (const name of files.slice(0, -BACKUPS_KEPT)) await rm(join(backups, name));
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended by itself.
  }
}
