import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { OpenRegistry } from "../../../src/app/open-registry.ts";
import { GoogleWallet } from "../../../src/channels/wallet/google/google-wallet.ts";
import type { WalletPorts } from "../../../src/channels/wallet/ports.ts";
import { ApiError } from "../../../src/domain/errors.ts";
import type { Pass, PassBundle } from "../../../src/domain/passes.ts";
import type { PlatformCredentials } from "../../../src/domain/platform.ts";
import type { NewJob } from "../../../src/domain/queue.ts";
import { QUEUE_SHARE, type Tenant } from "../../../src/domain/tenant.ts";
import { NetworkGuard } from "../../../src/runtime/network-guard.ts";
import type { OpenDatabase } from "../../../src/storage/database.ts";
import { migrate } from "../../../src/storage/migrate.ts";
import { hurriedClock } from "../../channels/wallet/google-world.ts";
import { openMadePglite } from "../../support/made-postgres.ts";
import { must } from "../../support/must.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { openTestRegistry } from "../../tenants/open-test-registry.ts";
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

/** A front door over a real registry, whose tenant `acme` has passes, and a signer that signs nothing. */
export class WalletFront {
  private constructor(
    readonly front: Front,
    readonly registry: OpenRegistry,
    private readonly database: OpenDatabase,
    private readonly folder: string,
  ) {}

  static async start(
    platform: PlatformCredentials = PLATFORM,
    changes: (wallet: WalletPorts) => WalletPorts = (wallet) => wallet,
  ): Promise<WalletFront> {
    const folder = await mkdtemp(join(tmpdir(), "waybill-wallet-"));
    const database = await openMadePglite(join(folder, "postgres"));
    await migrate(database.db);
    const registry = await openTestRegistry(database);
    const { passes, devices, directory } = registry;
    await must(
      registry.registry.putPlan({
        name: "pro",
        requestsPerMinute: 1_000_000,
        deliveriesPerSecond: null,
        ...QUEUE_SHARE,
      }),
    );
    await must(registry.registry.createTenant({ id: "acme", name: "Acme", plan: "pro", tokens: 100_000 }));
    const { api_key: apiKey } = await must(registry.registry.createKey("acme"));
    const bundleOf = async (pass: Pass, _tenant: Tenant): Promise<PassBundle> => {
      const kept = await passes.bundle(pass.passId);
      if (kept !== null && kept.version >= pass.version) return kept;
      return passes.putBundle(pass.passId, pass.version, new TextEncoder().encode(`bundle ${pass.version}`));
    };
    // Requests for passes only ask it whose a class or an object is, which is known here.
    const google = new GoogleWallet({
      apiUrl: NOWHERE,
      tokenUrl: NOWHERE,
      saveUrlBase: NOWHERE,
      platform,
      classOwners: registry.googleClasses,
      passes,
      clock: hurriedClock,
      telemetry: new QuietTelemetry(),
    });
    const wallet: WalletPorts = {
      ...NO_WALLET,
      passes,
      devices,
      bundles: { bundleOf },
      classes: google.classes,
      google: {
        status: async () => ({ googleStatus: "ACTIVE", hasUsers: true, isInstalled: true }),
        requireOwnLinks: (tenant, content) => google.requireOwnLinks(tenant, content),
      },
      saveLinks: { linkOf: (pass) => `https://save.test/${pass.serial}` },
      checkSigner: ({ teamId, wwdrPem }) => ({
        problem: teamId === "ZZZZZZZZZZ" ? "the certificate is for another team" : null,
        warnings: wwdrPem === null ? ["the certificate was issued by nobody who is known"] : [],
      }),
      outbound: new NetworkGuard({ allow: ["127.0.0.0/8"], publicAllowed: true }),
    };
    const ports = { registry: registry.registry, directory, platform, wallet: changes(wallet) };
    const front = await Front.start(ports);
    return new WalletFront(Object.assign(front, { apiKey }), registry, database, folder);
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

  /** Does what a channel does with the last job. */
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

  async stop(): Promise<void> {
    await this.front.stop();
    await this.registry.stop();
    await this.database.close();
    await rm(this.folder, { recursive: true, force: true });
  }
}
