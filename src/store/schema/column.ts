export interface Column {
  /** The PostgreSQL type; SQLite calls the same `text` and `integer`. */
  readonly type: 'text' | 'bigint'
  readonly nullable: boolean
}

export const text = { type: 'text', nullable: false } as const
export const bigint = { type: 'bigint', nullable: false } as const

export function nullable<T extends Column['type']>({ type }: { readonly type: T }) {
  return { type, nullable: true } as const
}
