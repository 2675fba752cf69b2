/** Bun puts imported styles into a file of their own. */
declare module "*.css";
