import type { GoogleContent, NotificationKind, PassContent, Unusable } from "../../domain/channels/wallet.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";

/**
 * A pass. `creating` until its first job has ended, `failed` if that job ended without a pass: then its token is
 * refunded and its serial is free again.
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
  /**
   * Google: its object is known to exist and to be ours, although the job goes on; undefined if not, or if it was not
   * checked.
   */
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
  /** Bytes of the images that the change may add, by their hashes. */
  readonly images: ReadonlyMap<string, Uint8Array>;
  /**
   * Computes the new content from the current one, or returns why the change is refused. Called under the pass's lock.
   * Null if the content is unchanged and the pass keeps its version.
   */
  change(pass: Pass): PassContent | RefusedChange | null;
}

export interface UpdatedPass extends Pass {
  /**
   * Set if the content is unchanged. `told`: Apple's version is signed, so its job has notified the holders. `untold`:
   * the holders may not have been notified yet. Undefined if the version is new.
   */
  readonly unchanged?: "told" | "untold";
}

export interface SignablePass {
  readonly pass: Pass;
  /** Bytes by the hashes in the pass's content; images that are not stored are omitted. */
  readonly images: ReadonlyMap<string, Uint8Array<ArrayBuffer>>;
}

/** The reason why a pass cannot be changed, in a sentence for the caller. */
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
   * Refunds the token and frees the serial, because the job failed. The pass is kept for a while, in case its job is
   * retried. Safe to repeat; has no effect if the job created no pass or has finished one.
   */
  undoCreate(tenantId: string, jobId: string): Promise<void>;
  /** Does the same for a job that cannot be retried, cancelled or never accepted, and removes the pass. Safe to repeat. */
  discard(tenantId: string, jobId: string): Promise<void>;
  /**
   * Takes the token and the serial again for a retry of a job that failed to create its pass, both or neither. `none`:
   * it creates no pass, or its pass is no longer kept. `not_failed`: its pass has not failed. `serial_used`: another
   * pass has the serial by now.
   */
  redoCreate(tenantId: string, jobId: string): Promise<RedoneCreate>;
  /** Records that the job that creates the pass did its work. Safe to repeat. */
  finishCreate(passId: string): Promise<void>;
  /** Records that Google has the pass whose job goes on to send a message. Safe to repeat. */
  noteMade(passId: string): Promise<void>;
  /**
   * Updates the pass, whose version grows unless it is unchanged. Null if there is no such pass, or its creation
   * failed.
   */
  update(tenantId: string, update: PassUpdate): Promise<UpdatedPass | RefusedChange | null>;
  /** Null if the tenant has no such pass. */
  find(tenantId: string, passId: string): Promise<Pass | null>;
  /** Finds the tenant's pass with the serial; null if the serial is free. */
  holder(pass: Pick<Pass, "tenantId" | "content" | "serial">): Promise<Pass | null>;
  /** Finds Apple passes by their ids on devices: more than one if tenants share a pass type. */
  findBySerial(passTypeId: string, serial: string): Promise<readonly Pass[]>;
  /**
   * Reads the pass's newest version and its images consistently: the next update removes images that only this version
   * has. Null if the tenant has no such pass.
   */
  signable(tenantId: string, passId: string): Promise<SignablePass | null>;
  /** Reads the last signed bundle; null if there is none yet. */
  bundle(passId: string): Promise<PassBundle | null>;
  /**
   * Stores the bundle of a version, unless a later one is stored, and moves the pass's update tag in the same
   * transaction. Returns the bundle that is stored now; null if there is no such Apple pass.
   */
  putBundle(passId: string, version: number, bytes: Uint8Array<ArrayBuffer>): Promise<PassBundle | null>;
  /**
   * Reads a page of the passes that were stored before `beforeMs` (Unix) and are still `creating`, oldest first, after
   * the given one; empty after the last page.
   */
  unfinished(beforeMs: number, after: UnfinishedPass | null): Promise<readonly UnfinishedPass[]>;
  /** Removes a page of passes that failed before `beforeMs` (Unix). Resolves to whether all such passes are done. */
  removeFailed(beforeMs: number): Promise<boolean>;
}

/**
 * The reason why a pass is not charged. `failed_often`: too many of the tenant's passes failed today, so it must wait
 * until tomorrow.
 */
export type Unpaid = "no_tokens" | "failed_often";

export type RedoneCreate = "done" | "none" | "not_failed" | "serial_used" | Unpaid;

/** A pass whose first job has not ended, according to the registry. */
export interface UnfinishedPass extends Pick<Pass, "tenantId" | "passId" | "jobId"> {
  /** When it was stored, or its job was last retried. */
  readonly storedAt: Date;
}

/** Signs Apple's passes. */
export interface BundleMaker {
  /**
   * Returns the bundle of the pass's version or a later one: the stored bundle, or else a new one that is signed and
   * stored first. Null if the pass no longer exists. `Unusable`: the credentials are missing, cannot sign, or sign for
   * another pass type.
   */
  getBundle(pass: Pass, tenant: Tenant): Promise<PassBundle | Unusable | null>;
}

/** Signs text with the pass's own certificate, as Wallet requires. */
export interface TokenSigner {
  /** Creates a detached CMS signature over the text. `Unusable`: as in `BundleMaker`. */
  signText(text: string, pass: Pass, tenant: Tenant): Promise<Uint8Array<ArrayBuffer> | Unusable>;
}

/** A pass as Google Wallet stores it. */
export interface GooglePassStatus {
  /** Upper case. `not_found`: Google does not have the object. */
  readonly googleStatus: "ACTIVE" | "COMPLETED" | "EXPIRED" | "INACTIVE" | "not_found";
  /** Whether at least one user saved the pass. */
  readonly hasUsers: boolean;
  /** Whether there is evidence that it is on a device. */
  readonly isInstalled: boolean;
  /** Set if Google reports each save and removal to us. */
  readonly isCalledBack?: true;
}

/** Queries Google Wallet. */
export interface GooglePasses {
  /** `Unusable`: the credentials are missing, or Google does not answer, so the status is unknown. */
  status(tenant: Tenant, pass: Pass): Promise<GooglePassStatus | Unusable>;
  /**
   * Returns why the pass must not have its links: one of them is another tenant's object, on the issuer that tenants
   * share. Null if they are the tenant's own. Does not call Google.
   */
  linkProblem(tenant: Tenant, content: GoogleContent): Promise<string | null>;
}

/** Links that add a pass to its holder's Google Wallet. */
export interface SaveLinks {
  /** Builds the link, which is always the same for a pass. `Unusable`: the credentials are missing or cannot sign. */
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

/** The devices of Apple passes. */
export interface PassDevices {
  /**
   * `created`: the device did not have the pass. `full`: the pass is on the maximum number of devices, and was not
   * registered. A new push token applies to all of the tenant's passes of the type on the device.
   */
  register(registration: Registration): Promise<"created" | "known" | "full">;
  /** Returns whether the device had the pass. */
  unregister(deviceId: string, passId: string): Promise<boolean>;
  /** Lists the devices that have the pass. */
  targets(passId: string): Promise<readonly PushTarget[]>;
  count(passId: string): Promise<number>;
  /**
   * Finds the serials of the device's passes of a type whose update tag is beyond `since`, and the newest tag among
   * them. Null if the device has no such pass or none changed.
   */
  updatedSince(
    deviceId: string,
    passTypeId: string,
    since: number,
  ): Promise<{ readonly serials: readonly string[]; readonly tag: number } | null>;
  /**
   * Removes the registrations of the type that use a push token which the push service reports as dead. `goneAtMs`
   * (unix): the time of its end, so later registrations stay; null if unknown.
   */
  forget(passTypeId: string, pushToken: string, goneAtMs: number | null): Promise<void>;
  /** Removes the passes of a deleted tenant from some of their devices. Resolves to whether none is left. */
  removeOfTenant(tenantId: string): Promise<boolean>;
  /** Removes failed passes from all of their devices. */
  removeOfPasses(passIds: readonly string[]): Promise<void>;
}
