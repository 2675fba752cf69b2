/** Bun bundles imported styles into a separate file. */
declare module "*.css";
