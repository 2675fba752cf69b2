/** What connections to a listener of ours tell about who is at their other end. */
export interface Listening {
  requestIP(request: Request): { readonly address: string } | null;
}

/** Where requests come from. */
export class CallerAddresses {
  private listening: Listening | null = null;
  /** The requests that came over a connection, by those that were made of them. */
  private readonly originals = new WeakMap<Request, Request>();

  listensOn(listening: Listening): void {
    this.listening = listening;
  }

  /** `copy` is answered in place of `request`. */
  standsFor(copy: Request, request: Request): void {
    this.originals.set(copy, request);
  }

  /** The address at the other end of the connection: behind a proxy, the proxy's. Null: there is no connection. */
  of(request: Request): string | null {
    return this.listening?.requestIP(this.originals.get(request) ?? request)?.address ?? null;
  }
}
