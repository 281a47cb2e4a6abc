/**
 * Credentials that one commit ends. On SQLite even the largest rows and entries of a slice fit into the reserve for a full
 * disk (ADR 0023), and requests wait for each slice; on PostgreSQL larger slices save round trips.
 */
export const END_SLICE = { sqlite: 100, postgres: 2_500 } as const
