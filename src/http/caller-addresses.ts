/** A listener's information about the other end of its connections. */
export interface Listening {
  requestIP(request: Request): { readonly address: string } | null;
  /** How long the connection of the request may stay silent, in seconds; 0: for ever. */
  timeout?(request: Request, seconds: number): void;
}

/** Finds the address a request came from. */
export class CallerAddresses {
  private readonly listenings: Listening[] = [];
  /** Maps a copied request to the request that arrived over the connection. */
  private readonly originals = new WeakMap<Request, Request>();

  listensOn(listening: Listening): void {
    this.listenings.push(listening);
  }

  /** Registers `copy`, which is answered in place of `request`. */
  standsFor(copy: Request, request: Request): void {
    this.originals.set(copy, request);
  }

  /**
   * Lets the connection stay silent for so long (in seconds; 0: for ever), even while it only receives. The setting also
   * applies to the connection's later requests, until it is changed.
   */
  mayStaySilent(request: Request, seconds: number): void {
    const listening = this.listenings.find((one) => one.requestIP(request) !== null);
    listening?.timeout?.(request, seconds);
  }

  /** The address at the other end of the connection; behind a proxy, the proxy's. Null if there is no connection. */
  of(request: Request): string | null {
    const arrived = this.originals.get(request) ?? request;
    for (const listening of this.listenings) {
      const from = listening.requestIP(arrived);
      if (from !== null) return from.address;
    }
    return null;
  }
}
