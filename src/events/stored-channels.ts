/** The channels that the steps of the schema name. Others are added to the columns behind them: `widening.ts`. */
export const FIRST_CHANNELS = ["email", "whatsapp", "wallet"] as const;
