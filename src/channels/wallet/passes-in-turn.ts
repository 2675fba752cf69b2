import { CallTurns } from "../../http/call-turns.ts";
import { walletLimits } from "./limits.ts";
import { PassRepository, type PassRepositoryOptions } from "./pass-repository.ts";
import type { NewPass, Pass, PassUpdate, RedoneCreate, RefusedChange, Unpaid } from "./passes.ts";

/**
 * A repository in which tenants take turns to store, change or recharge passes: such calls wait for the row of a tenant
 * or a pass, and each waiting call occupies one of the registry's connections. They also reject as `CallTurns` does.
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
