import { join } from "node:path";

/** A file of the operators' dashboard. */
export interface DashboardPage {
  readonly path: string;
  /** Its operation and description in the API document. */
  readonly operation: string;
  readonly summary: string;
  readonly mediaType: string;
  readonly file: Bun.BunFile;
}

/** The operators' dashboard: three files that load nothing from other hosts. */
export const DASHBOARD_PAGES: readonly DashboardPage[] = [
  {
    path: "/dash",
    operation: "dashboard",
    summary: "The operators' page",
    mediaType: "text/html",
    file: fileNamed("page.html"),
  },
  {
    path: "/dash/dashboard.js",
    operation: "dashboardScript",
    summary: "Part of the operators' page",
    mediaType: "text/javascript",
    file: fileNamed("dashboard.js"),
  },
  {
    path: "/dash/dashboard.css",
    operation: "dashboardStyle",
    summary: "Part of the operators' page",
    mediaType: "text/css",
    file: fileNamed("dashboard.css"),
  },
];

function fileNamed(name: string): Bun.BunFile {
  return Bun.file(join(import.meta.dir, name));
}
