/** What a listener knows about the other end of its connections. */
export interface Listening {
  requestIP(request: Request): { readonly address: string } | null;
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
