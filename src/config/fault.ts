export interface Fault {
  /** `file:line:col`, `flag --listen`, `environment MAYFLY_LISTEN` or `default`. */
  readonly source: string
  /** Never holds the value of a secret field. */
  readonly message: string
}

/** Everything that is wrong with the configuration, reported together. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly faults: readonly Fault[]

  constructor(faults: readonly Fault[]) {
    super(faults.map((fault) => `${fault.source}: ${fault.message}`).join('\n'))
    this.faults = faults
  }
}

/** One value that cannot be used; the reader adds where it came from. */
export class InvalidValue extends Error {
  override readonly name = 'InvalidValue'
  /** Where inside the value, for lists. */
  readonly path: readonly (string | number)[]

  constructor(message: string, path: readonly (string | number)[] = []) {
    super(message)
    this.path = path
  }
}

/** A value of the operator's own, for a message: quoted, escaped and cut. Never for secret fields. */
export function quote(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value)
  return text.length > 80 ? `${text.slice(0, 77)}…` : text
}
