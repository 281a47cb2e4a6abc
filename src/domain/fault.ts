export interface Fault {
  /** `file:line:col`, `flag --listen`, `environment MAYFLY_LISTEN` or `default`. */
  readonly source: string
  /** Never contains the value of a secret setting. */
  readonly message: string
}

/** All faults of the configuration, reported together. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly faults: readonly Fault[]

  constructor(faults: readonly Fault[]) {
    super(faults.map((fault) => `${fault.source}: ${fault.message}`).join('\n'))
    this.faults = faults
  }
}

/** An invalid value; the reader adds its source. */
export class InvalidValue extends Error {
  override readonly name = 'InvalidValue'
  /** Place inside the value, for lists. */
  readonly path: readonly (string | number)[]

  constructor(message: string, path: readonly (string | number)[] = []) {
    super(message)
    this.path = path
  }
}

/** A value of the operator, quoted, escaped and truncated for a message. Never for secret settings. */
export function quote(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value)
  return text.length > 80 ? `${text.slice(0, 77)}…` : text
}
