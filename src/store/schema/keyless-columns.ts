import { bigint, nullable, text } from './column.ts'

/** Logins without a secret of ours, and the entries that admit them. */
export const KEYLESS_COLUMNS = {
  /** Access tokens of agents without secrets, until they end. */
  logins: {
    jti: text,
    agent_id: text,
    expires_at: bigint,
    /** The run that the token is for; null: none. */
    run_id: nullable(text),
  },
  /** When some node last had this entry of `identities` or `platforms`. */
  trusts: {
    entry: text,
    trusted_at: bigint,
  },
} as const
