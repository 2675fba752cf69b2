/** An error as the Graph API returns it, with its HTTP status. */
export interface GraphRefusal {
  readonly status: number;
  readonly code: number;
  readonly subcode?: number;
  /** Without the code prefix. */
  readonly message: string;
  readonly details?: string;
  readonly type?: string;
}

export function invalid(message: string): GraphRefusal {
  return { status: 400, code: 100, message };
}

export function missing(details: string): GraphRefusal {
  return { status: 400, code: 131008, message: "Required parameter is missing", details };
}

export function badValue(details: string): GraphRefusal {
  return { status: 400, code: 131009, message: "Parameter value is not valid", details };
}
