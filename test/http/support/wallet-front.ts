import type { OpenRegistry } from "../../../src/app/open-registry.ts";
import { GoogleWallet } from "../../../src/channels/wallet/google/google-wallet.ts";
import type { Pass, PassBundle } from "../../../src/channels/wallet/passes.ts";
import type { WalletPorts } from "../../../src/channels/wallet/ports.ts";
import type { PlatformCredentials } from "../../../src/domain/channels/platform.ts";
import type { NewJob } from "../../../src/domain/jobs/queue.ts";
import { QUEUE_SHARE, type Tenant } from "../../../src/domain/tenants/tenant.ts";
import { ApiError } from "../../../src/http/api-error.ts";
import { NetworkGuard } from "../../../src/runtime/network-guard.ts";
import { hurriedClock } from "../../channels/wallet/google-world.ts";
import { LONGEST_WAITS } from "../../support/longest-waits.ts";
import { must } from "../../support/must.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { Front } from "./front.ts";
import { NO_WALLET } from "./no-wallet.ts";

export const PLATFORM: PlatformCredentials = {
  whatsapp: null,
  apple: {
    certificatePem: "",
    privateKeyPem: "",
    passphrase: null,
    wwdrPem: null,
    passTypeId: "pass.test.platform",
    teamId: "A1B2C3D4E5",
  },
  google: { issuerId: "33", clientEmail: "passes@project.test", privateKeyPem: "" },
};

const NOWHERE = "http://127.0.0.1:9";

/** A front door whose tenant `acme` has tokens for passes, and a signer that leaves files unsigned. */
export class WalletFront {
  private constructor(readonly front: Front) {}

  static async start(
    platform: PlatformCredentials = PLATFORM,
    changes: (wallet: WalletPorts) => WalletPorts = (wallet) => wallet,
  ): Promise<WalletFront> {
    const front = await Front.start((stores) => ({ platform, wallet: changes(openWallet(stores, platform)) }));
    const { registry } = front;
    await must(
      registry.putPlan({ name: "pro", requestsPerMinute: 1_000_000, deliveriesPerSecond: null, ...QUEUE_SHARE }),
    );
    await must(registry.addTokens("acme", 100_000, "for the tests"));
    return new WalletFront(front);
  }

  get registry(): OpenRegistry {
    return this.front.stores;
  }

  /** The last job that was queued. */
  get lastJob(): NewJob {
    const last = this.front.queue.queued.at(-1);
    if (last === undefined) throw new Error("nothing was queued");
    return last.job;
  }

  /** The pass of the last job. */
  async lastPass(): Promise<Pass> {
    const { passId } = JSON.parse(this.lastJob.payload);
    const pass = await this.registry.passes.find("acme", String(passId));
    if (pass === null) throw new ApiError(404, "the job has no pass");
    return pass;
  }

  /** Handles the last job as a channel does. */
  async deliverLast(): Promise<Pass> {
    const { jobId } = this.lastJob;
    const pass = await this.lastPass();
    await this.registry.passes.finishCreate(pass.passId);
    const job = this.front.queue.jobs.get(jobId);
    if (job === undefined) throw new Error("the job is unknown");
    this.front.queue.jobs.set(jobId, { ...job, status: "success", result: { pass_id: pass.passId } });
    return pass;
  }

  async balance(tenantId = "acme"): Promise<number> {
    return (await must(this.registry.registry.tenant(tenantId))).tokens;
  }

  stop(): Promise<void> {
    return this.front.stop();
  }
}

function openWallet(
  { passes, devices, googleClasses, googleSaves }: OpenRegistry,
  platform: PlatformCredentials,
): WalletPorts {
  const findBundle = async (pass: Pass, _tenant: Tenant): Promise<PassBundle | null> => {
    const kept = await passes.bundle(pass.passId);
    if (kept !== null && kept.version >= pass.version) return kept;
    return passes.putBundle(pass.passId, pass.version, new TextEncoder().encode(`bundle ${pass.version}`));
  };
  // Requests for passes only ask it for the owner of a class or an object, which is known here.
  const google = new GoogleWallet({
    apiUrl: NOWHERE,
    tokenUrl: NOWHERE,
    saveUrlBase: NOWHERE,
    platform,
    classOwners: googleClasses,
    passes,
    callbackUrl: () => null,
    clock: hurriedClock,
    random: LONGEST_WAITS,
    telemetry: new QuietTelemetry(),
  });
  return {
    ...NO_WALLET,
    passes,
    devices,
    saves: googleSaves,
    bundles: { getBundle: findBundle },
    classes: google.classes,
    google: {
      status: async () => ({ googleStatus: "ACTIVE", hasUsers: true, isInstalled: true, isCalledBack: true as const }),
      linkProblem: (tenant, content) => google.linkProblem(tenant, content),
    },
    saveLinks: { buildLink: (pass) => `https://save.test/${pass.serial}` },
    checkSigner: ({ teamId, wwdrPem }) => ({
      problem: teamId === "ZZZZZZZZZZ" ? "the certificate is for another team" : null,
      warnings: wwdrPem === null ? ["the certificate was issued by nobody who is known"] : [],
    }),
    outbound: new NetworkGuard({ allow: ["127.0.0.0/8"], publicAllowed: true }),
  };
}
