/** The page's search; "" matches anything. */
export interface JobSearch {
  readonly tenant: string;
  /** A recipient or a job's id. */
  readonly who: string;
  readonly status: string;
  readonly channel: string;
  readonly template: string;
  readonly failureClass: string;
  /** A time, as the API takes it. */
  readonly from: string;
  readonly to: string;
}
