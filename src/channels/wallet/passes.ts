import type { GoogleContent, NotificationKind, PassContent, Unusable } from "../../domain/channels/wallet.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";

/**
 * A pass. `creating` until its first job has ended, `failed` if that job ended without a pass: then its token is given
 * back and its serial is free again.
 */
export interface Pass {
  readonly passId: string;
  readonly tenantId: string;
  /** `serial_number` or `object_id`. */
  readonly serial: string;
  readonly state: "creating" | "ready" | "failed";
  /** Starts at 1 and grows by one with every update. */
  readonly version: number;
  readonly content: PassContent;
  /**
   * Apple: fixed when the pass is created, null for Google's. A pass can only be signed again for the same pass type.
   */
  readonly passTypeId: string | null;
  /** Apple: the token with which its devices fetch it, 32 characters. Never changes. */
  readonly authenticationToken: string | null;
  /** The job that created it. */
  readonly jobId: string;
  /** Google: its object is known to be there and ours, although the job goes on; absent: not, or nobody asks. */
  readonly isMade?: true;
}

export interface NewPass extends Omit<Pass, "state" | "version" | "isMade"> {
  /** Bytes of the content's images, by the hashes in it. */
  readonly images: ReadonlyMap<string, Uint8Array>;
}

export interface PassUpdate {
  readonly passId: string;
  readonly jobId: string;
  readonly notificationKind: NotificationKind | null;
  readonly notifyMessage: string | null;
  /** Bytes of the images that the change may bring, by their hashes. */
  readonly images: ReadonlyMap<string, Uint8Array>;
  /**
   * Computes the new content from the current one, or says why the pass cannot be changed so. Called under the pass's
   * lock. Null: it changes nothing, and the pass keeps its version.
   */
  change(pass: Pass): PassContent | RefusedChange | null;
}

export interface UpdatedPass extends Pass {
  /**
   * Nothing changed. `told`: Apple's version is signed, so that its job told the holders. `untold`: they have to be told, for all that
   * is known. Absent: the version is new.
   */
  readonly unchanged?: "told" | "untold";
}

export interface SignablePass {
  readonly pass: Pass;
  /** Bytes by the hashes in the pass's content; one that is not stored is left out. */
  readonly images: ReadonlyMap<string, Uint8Array<ArrayBuffer>>;
}

/** Why a pass cannot be changed as asked, in a sentence for the caller. */
export interface RefusedChange {
  readonly why: string;
}

/** The signed file of an Apple pass. */
export interface PassBundle {
  /** The version of the pass in the bundle. */
  readonly version: number;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /**
   * Whole seconds since 1970, later than those of every earlier bundle: HTTP dates are no more precise (RFC 9110,
   * 5.6.7).
   */
  readonly modifiedAt: number;
}

/** The passes, in the registry. Rejects with `UnavailableError` if the registry cannot be reached. */
export interface PassStore {
  /**
   * Stores the pass and takes one token for its job, both or neither. `serial_used`: the tenant has a pass with the
   * serial.
   */
  create(pass: NewPass): Promise<"created" | "serial_used" | Unpaid>;
  /**
   * Gives back what `create` took and frees the serial, because the job failed. The pass is kept for a while, in case its job is tried
   * again. Safe to repeat; has no effect if the job created no pass or has finished one.
   */
  undoCreate(tenantId: string, jobId: string): Promise<void>;
  /** Does the same for a job that nobody can try again, cancelled or never accepted: nothing of the pass is kept. Safe to repeat. */
  discard(tenantId: string, jobId: string): Promise<void>;
  /**
   * Takes the token and the serial again for a job that failed to create its pass and is tried again, both or neither.
   * `none`: it creates no pass, or its pass is not kept any more. `not_failed`: its pass has not failed. `serial_used`: another pass
   * has the serial by now.
   */
  redoCreate(tenantId: string, jobId: string): Promise<RedoneCreate>;
  /** Records that the job that creates the pass did its work. Safe to repeat. */
  finishCreate(passId: string): Promise<void>;
  /** Records that Google has the pass whose job goes on to send a message. Safe to repeat. */
  noteMade(passId: string): Promise<void>;
  /** The pass with its next version, or as it is. Null: there is no such pass, or its creation failed. */
  update(tenantId: string, update: PassUpdate): Promise<UpdatedPass | RefusedChange | null>;
  /** Null: the tenant has no such pass. */
  find(tenantId: string, passId: string): Promise<Pass | null>;
  /** The tenant's pass that already has the serial; null: the serial is free. */
  holder(pass: Pick<Pass, "tenantId" | "content" | "serial">): Promise<Pass | null>;
  /** Apple passes as their devices know them: more than one if tenants share a pass type. */
  findBySerial(passTypeId: string, serial: string): Promise<readonly Pass[]>;
  /**
   * The pass's newest version with its images, both of one moment: the next update takes away what only this version has. Null: the
   * tenant has no such pass.
   */
  signable(tenantId: string, passId: string): Promise<SignablePass | null>;
  /** The last signed bundle; null: none yet. */
  bundle(passId: string): Promise<PassBundle | null>;
  /**
   * Stores the bundle of a version, unless a later one is stored, and moves the pass's update tag in the same
   * transaction. Returns the bundle that is stored now; null: there is no such Apple pass.
   */
  putBundle(passId: string, version: number, bytes: Uint8Array<ArrayBuffer>): Promise<PassBundle | null>;
  /**
   * A page of the passes that were stored before `beforeMs` (Unix) and are still `creating`, oldest first, after the given one;
   * none: that was the last page.
   */
  unfinished(beforeMs: number, after: UnfinishedPass | null): Promise<readonly UnfinishedPass[]>;
  /** Removes passes that failed before `beforeMs` (Unix), if there are any: a page of them. Resolves to whether there is nothing more to do now. */
  removeFailed(beforeMs: number): Promise<boolean>;
}

/** Why a pass is not charged for. `failed_often`: so many of the tenant's passes failed today that it is to try none before tomorrow. */
export type Unpaid = "no_tokens" | "failed_often";

export type RedoneCreate = "done" | "none" | "not_failed" | "serial_used" | Unpaid;

/** A pass whose first job has not ended, as far as the registry knows. */
export interface UnfinishedPass extends Pick<Pass, "tenantId" | "passId" | "jobId"> {
  /** When it was stored, or its job tried again. */
  readonly storedAt: Date;
}

/** Signs Apple's passes. */
export interface BundleMaker {
  /**
   * The bundle of the pass's version or a later one: the stored bundle, or else a new one that is signed and stored
   * first. Null: the pass is gone. `Unusable`: the credentials are missing, cannot sign, or sign for another pass type.
   */
  getBundle(pass: Pass, tenant: Tenant): Promise<PassBundle | Unusable | null>;
}

/** Signs what Wallet wants to see signed by the pass's own certificate. */
export interface TokenSigner {
  /** A detached CMS signature over the text. `Unusable`: as `BundleMaker` says. */
  signText(text: string, pass: Pass, tenant: Tenant): Promise<Uint8Array<ArrayBuffer> | Unusable>;
}

/** A pass as Google Wallet stores it. */
export interface GooglePassStatus {
  /** Upper case. `not_found`: Google does not have the object. */
  readonly googleStatus: "ACTIVE" | "COMPLETED" | "EXPIRED" | "INACTIVE" | "not_found";
  /** At least one user saved the pass. */
  readonly hasUsers: boolean;
  /** There is evidence that it is on a device. */
  readonly isInstalled: boolean;
  /** Google tells us of each save and removal. */
  readonly isCalledBack?: true;
}

/** Queries Google Wallet. */
export interface GooglePasses {
  /** `Unusable`: the credentials are missing, or Google does not answer; no status is made up. */
  status(tenant: Tenant, pass: Pass): Promise<GooglePassStatus | Unusable>;
  /**
   * Why the pass must not have its links: one of them is another tenant's object, on the issuer that tenants share.
   * Null: they are the tenant's own. Does not call Google.
   */
  linkProblem(tenant: Tenant, content: GoogleContent): Promise<string | null>;
}

/** Links that add a pass to its holder's Google Wallet. */
export interface SaveLinks {
  /** Always the same for a pass. `Unusable`: the credentials are missing or cannot sign. */
  buildLink(pass: Pass, tenant: Tenant): string | Unusable;
}

/** A device that has a pass, and the address of its pushes. */
export interface PushTarget {
  readonly deviceId: string;
  readonly pushToken: string;
}

export interface Registration extends PushTarget {
  readonly passId: string;
  readonly passTypeId: string;
}

/** Which devices have which Apple passes. */
export interface PassDevices {
  /**
   * `created`: the device did not have the pass. `full`: the pass is on as many devices as one can be, and nothing has
   * changed. A new push token applies to all of the tenant's passes of the type on the device.
   */
  register(registration: Registration): Promise<"created" | "known" | "full">;
  /** Whether the device had the pass. */
  unregister(deviceId: string, passId: string): Promise<boolean>;
  /** Devices that have the pass. */
  targets(passId: string): Promise<readonly PushTarget[]>;
  count(passId: string): Promise<number>;
  /**
   * Serials of the device's passes of a type whose update tag is beyond `since`, and the newest tag among them. Null:
   * nothing is registered there, or nothing changed.
   */
  updatedSince(
    deviceId: string,
    passTypeId: string,
    since: number,
  ): Promise<{ readonly serials: readonly string[]; readonly tag: number } | null>;
  /**
   * The push service reports that the token is dead: removes the registrations of the type that use it. `goneAtMs` (unix): since
   * when, so later registrations stay; null: it did not say.
   */
  forget(passTypeId: string, pushToken: string, goneAtMs: number | null): Promise<void>;
  /** Takes the passes of a deleted tenant off some of their devices. Resolves to whether none is left. */
  removeOfTenant(tenantId: string): Promise<boolean>;
  /** Takes passes that failed off all of their devices. */
  removeOfPasses(passIds: readonly string[]): Promise<void>;
}
