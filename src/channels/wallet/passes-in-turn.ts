import { CallTurns } from "../../http/call-turns.ts";
import { walletLimits } from "./limits.ts";
import { PassRepository, type PassRepositoryOptions } from "./pass-repository.ts";
import type { NewPass, Pass, PassUpdate, RedoneCreate, RefusedChange, Unpaid } from "./passes.ts";

/**
 * The passes, whose tenants take turns where they have them stored, changed or charged again: their calls wait for a tenant's and a
 * pass's row, and whoever waits there has one of the registry's connections. Such a call rejects as `CallTurns` says, too.
 */
export class PassesInTurn extends PassRepository {
  private readonly turns: CallTurns;

  constructor(options: PassRepositoryOptions) {
    super(options);
    this.turns = new CallTurns(walletLimits.passChanges, options.clock);
  }

  override create(pass: NewPass): Promise<"created" | "serial_used" | Unpaid> {
    return this.turns.inTurn(pass.tenantId, () => super.create(pass));
  }

  override redoCreate(tenantId: string, jobId: string): Promise<RedoneCreate> {
    return this.turns.inTurn(tenantId, () => super.redoCreate(tenantId, jobId));
  }

  override update(tenantId: string, update: PassUpdate): Promise<Pass | RefusedChange | null> {
    return this.turns.inTurn(tenantId, () => super.update(tenantId, update));
  }
}
