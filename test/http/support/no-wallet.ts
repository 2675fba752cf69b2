import { walletLimits } from "../../../src/channels/wallet/limits.ts";
import type { WalletPorts } from "../../../src/channels/wallet/ports.ts";
import { UnavailableError } from "../../../src/domain/errors.ts";
import { CallTurns } from "../../../src/http/call-turns.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";

const away = () => Promise.reject(new UnavailableError("there is no wallet here"));

/** The wallet of front doors that serve other channels. */
export const NO_WALLET: WalletPorts = {
  passes: {
    create: away,
    undoCreate: away,
    discard: away,
    redoCreate: away,
    finishCreate: away,
    noteMade: away,
    update: away,
    find: away,
    holder: away,
    findBySerial: away,
    signable: away,
    bundle: away,
    putBundle: away,
    unfinished: away,
    removeFailed: away,
  },
  devices: { count: away },
  bundles: { getBundle: away },
  google: { status: away, linkProblem: away },
  callbacks: { open: away },
  saves: { take: away, holders: away },
  classes: { create: away, change: away, read: away, isUsable: away },
  saveLinks: {
    buildLink: () => {
      throw new UnavailableError("there is no wallet here");
    },
  },
  fileLinks: {
    createLink: () => {
      throw new UnavailableError("there is no wallet here");
    },
    read: () => null,
  },
  fileTurns: new CallTurns(walletLimits.tenantFileReads, systemClock),
  checkSigner: () => ({ problem: null, warnings: [] }),
  noteSigner: async () => undefined,
  outbound: { routeTo: async () => ({ kind: "refused", cause: "absent", why: "is not reached from here" }) },
};
