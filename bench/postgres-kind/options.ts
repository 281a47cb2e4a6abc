import { POSTGRES_MAJORS } from '../../test/support/postgres-versions.ts'

/** What the scenario `postgres-kind` measures. */
export interface KindOptions {
  /** A major version to start from npm, or the URL of a superuser. */
  readonly server: number | string
  readonly way: 'functions' | 'direct'
  /** Tables of the database, one measurement each. */
  readonly tables: readonly number[]
  /** Live credentials at the beginning of a measurement. */
  readonly live: readonly number[]
  /** SCRAM iterations of the verifiers. */
  readonly iterations: readonly number[]
  readonly clients: readonly number[]
}

type Option = 'postgres' | 'way' | 'tables' | 'live' | 'iterations' | 'clients'

/** Throws if a value is not what the option takes. */
export function readKindOptions(given: { readonly [O in Option]?: string | undefined }): KindOptions {
  const way = given.way ?? 'functions'
  if (way !== 'functions' && way !== 'direct') throw new Error('--way is functions or direct')
  return {
    server: readServer(given.postgres ?? String(POSTGRES_MAJORS.at(-1))),
    way,
    tables: numbers('tables', given.tables ?? '1'),
    live: numbers('live', given.live ?? '0').sort((one, other) => one - other),
    iterations: numbers('iterations', given.iterations ?? '4096,256'),
    clients: numbers('clients', given.clients ?? '1,8'),
  }
}

function readServer(text: string): number | string {
  if (/^postgres(ql)?:\/\//.test(text)) return text
  const major = Number(text)
  if (POSTGRES_MAJORS.includes(major)) return major
  throw new Error(`--postgres is one of ${POSTGRES_MAJORS.join(', ')}, or a URL`)
}

function numbers(option: string, text: string): number[] {
  const read = text.split(',').map((one) => (/^\d+$/.test(one) ? Number(one) : Number.NaN))
  if (read.some(Number.isNaN)) throw new Error(`--${option} is a list of numbers, such as 1,1000`)
  return read
}
