import type { Dice } from "../simulation/dice.ts";
import type { FaultProxy } from "../support/fault-proxy.ts";
import type { SoakChannel } from "./book.ts";
import { type FaultKind, lasting } from "./fault.ts";
import type { SoakWorld } from "./soak-world.ts";

/** Faults of mail servers, chat and wallet providers, and tenants' receivers. */
export const providerFaults: readonly FaultKind[] = [
  { name: "mail-mood", weight: 8, group: "provider", run: mailMood },
  { name: "mail-network", weight: 6, group: "provider", run: (world, dice) => network(world, dice, "email") },
  { name: "mail-log-rotation", weight: 2, group: "provider", run: rotateLog },
  { name: "chat-mood", weight: 6, group: "provider", run: chatMood },
  { name: "chat-network", weight: 4, group: "provider", run: (world, dice) => network(world, dice, "whatsapp") },
  { name: "google-mood", weight: 4, group: "provider", run: googleMood },
  { name: "wallet-network", weight: 3, group: "provider", run: (world, dice) => network(world, dice, "wallet") },
  { name: "push-goes-away", weight: 1, group: "provider", run: pushGoesAway },
  { name: "receivers-mood", weight: 5, group: "provider", run: receiversMood },
];

async function mailMood(world: SoakWorld, dice: Dice): Promise<void> {
  const { mail } = world;
  const mood = dice.pick(["closed", "broken", "silent", "slow", "throttled"] as const);
  await lasting(world, {
    kind: `mail server ${mood}`,
    target: "mail",
    ms: dice.between(3_000, 20_000),
    begin: () => {
      mail.mood = mood;
    },
    end: () => {
      mail.mood = "ok";
    },
  });
}

async function chatMood(world: SoakWorld, dice: Dice): Promise<void> {
  const { chat } = world;
  const mood = dice.pick(["broken", "silent", "throttled", "lost"] as const);
  await lasting(world, {
    kind: `chat provider ${mood}`,
    target: "chat",
    ms: dice.between(3_000, 20_000),
    begin: () => chat.setMood(mood),
    end: () => chat.setMood("ok"),
  });
}

async function googleMood(world: SoakWorld, dice: Dice): Promise<void> {
  const { wallet } = world;
  const outcome = dice.pick(["throttled", "broken", "lost"] as const);
  await lasting(world, {
    kind: `Google ${outcome}`,
    target: "wallet",
    ms: dice.between(5_000, 20_000),
    begin: () => {
      wallet.trouble = { outcome, share: 0.7 };
    },
    end: () => {
      wallet.trouble = null;
    },
  });
}

async function receiversMood(world: SoakWorld, dice: Dice): Promise<void> {
  const { receivers } = world;
  const mood = dice.pick(["broken", "slow", "silent"] as const);
  await lasting(world, {
    kind: `receivers ${mood}`,
    target: "webhooks",
    ms: dice.between(5_000, 20_000),
    begin: () => receivers.setMood(mood),
    end: () => receivers.setMood("ok"),
  });
}

/** Connections that break, go silent or stay half-open. Calls in flight on them get no answer. */
async function network(world: SoakWorld, dice: Dice, channel: SoakChannel): Promise<void> {
  const proxy: Readonly<Record<SoakChannel, FaultProxy>> = {
    email: world.mail.proxy,
    whatsapp: world.chat.proxy,
    wallet: dice.chance(0.5) ? world.wallet.googleProxy : world.wallet.apnsProxy,
  };
  const wire = proxy[channel];
  const way = dice.pick(["silent", "half-open", "refused"] as const);
  await lasting(world, {
    kind: `connections ${way}`,
    target: channel,
    ms: dice.between(2_000, 20_000),
    excuse: "unanswered",
    channel,
    begin: async () => {
      if (way === "silent") wire.silence();
      else if (way === "half-open") wire.silenceExisting();
      else await wire.refuse();
    },
    end: () => wire.pass(),
  });
}

async function rotateLog({ mail, faults }: SoakWorld): Promise<void> {
  faults.at("rotation of the mail log", "mail");
  mail.rotateLog();
}

async function pushGoesAway({ wallet, faults }: SoakWorld): Promise<void> {
  faults.at("GOAWAY", "push service");
  wallet.goAway();
}
