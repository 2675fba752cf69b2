import { join } from "node:path";

/** A file of the operators' dashboard. */
export interface DashboardPage {
  readonly path: string;
  readonly contentType: string;
  readonly file: Bun.BunFile;
}

/** The operators' dashboard: three files, and nothing from other hosts. */
export const DASHBOARD_PAGES: readonly DashboardPage[] = [
  page("/dash", "text/html; charset=utf-8", "page.html"),
  page("/dash/dashboard.js", "text/javascript; charset=utf-8", "dashboard.js"),
  page("/dash/dashboard.css", "text/css; charset=utf-8", "dashboard.css"),
];

function page(path: string, contentType: string, name: string): DashboardPage {
  return { path, contentType, file: Bun.file(join(import.meta.dir, name)) };
}
