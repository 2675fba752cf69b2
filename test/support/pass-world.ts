import { CHANNELS } from "../../src/app/channels.ts";
import { type OpenRegistry, openRegistry } from "../../src/app/open-registry.ts";
import type { Pass } from "../../src/channels/wallet/passes.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { Vault } from "../../src/storage/vault.ts";
import { must } from "./must.ts";
import { QuietTelemetry } from "./quiet-telemetry.ts";
import { openRegistryDatabase } from "./registry-database.ts";

export const PASS_TYPE = "pass.test.event";

/** A registry on PGlite with the tenants acme and globex, and passes whose bundles the tests make up. */
export class PassWorld {
  private made = 0;

  private constructor(
    readonly registry: OpenRegistry,
    private readonly close: () => Promise<void>,
  ) {}

  static async open(): Promise<PassWorld> {
    const database = await openRegistryDatabase();
    const registry = await openRegistry({
      channels: CHANNELS,
      db: database.db,
      senderDomain: "waybill.test",
      shards: 16,
      vault: new Vault([new Uint8Array(32).fill(7)], systemRandom),
      clock: systemClock,
      random: systemRandom,
      feed: { announce: () => undefined, onChange: () => () => undefined },
      telemetry: new QuietTelemetry(),
    });
    registry.start();
    for (const id of ["acme", "globex"]) await must(registry.registry.createTenant({ id, name: id, tokens: 1_000 }));
    return new PassWorld(registry, async () => {
      await registry.stop();
      await database.close();
    });
  }

  /** A pass that has been created but not signed. */
  async aPass({ tenantId = "acme", serial = "", passTypeId = PASS_TYPE } = {}): Promise<AMadePass> {
    const { passes } = this.registry;
    const passId = `pass-${(this.made += 1)}`;
    const authenticationToken = `token-of-${passId}-`.padEnd(32, "x");
    await passes.create({
      passId,
      tenantId,
      serial: serial === "" ? `serial-${this.made}` : serial,
      content: { type: "apple", style: "generic", pass: {}, images: {} },
      passTypeId,
      authenticationToken,
      jobId: `job-of-${passId}`,
      images: new Map(),
    });
    await passes.finishCreate(passId);
    const pass = await passes.find(tenantId, passId);
    if (pass === null) throw new Error("the pass is not there");
    return { ...pass, passTypeId, authenticationToken };
  }

  /** Stores a bundle for the version, as signing it would. */
  sign(pass: Pass, version: number) {
    return this.registry.passes.putBundle(pass.passId, version, new TextEncoder().encode(`bundle ${version}`));
  }

  stop(): Promise<void> {
    return this.close();
  }
}

export interface AMadePass extends Pass {
  readonly passTypeId: string;
  readonly authenticationToken: string;
}
