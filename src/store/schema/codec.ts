import { COLUMNS, type Column, type Table } from './columns.ts'
import type { Tables } from './rows.ts'

/** Converts between the rows of a table and the objects of the domain. */
export interface Codec<T, Row> {
  encode(value: T): Row
  decode(row: Row): T
}

/** The differences between a row and its object. Without one, a column is the field of the same name in camel case. */
interface Differences<T, Row> {
  /** Columns that hold JSON. */
  readonly json?: readonly (keyof Row)[]
  /** The fields of columns that have another name. */
  readonly rename?: { readonly [C in keyof Row]?: keyof T }
  /** Columns that are made of the whole object. They are not read, except by `fields`. */
  readonly columns?: { readonly [C in keyof Row]?: (value: T) => Row[C] }
  /** Fields that are made of the whole row. */
  readonly fields?: { readonly [F in keyof T]?: (row: Row) => T[F] }
}

type CamelCase<S> = S extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<CamelCase<Tail>>}` : S
type Of<D, Key> = Key extends keyof D ? D[Key] : object
type Json<D> = D extends { readonly json: readonly (infer C)[] } ? C : never
type Plain<Row, D> = Exclude<keyof Row, keyof Of<D, 'columns'>>
type FieldOf<C, D> = C extends keyof Of<D, 'rename'> ? Of<D, 'rename'>[C] : CamelCase<C>

/** The columns and fields that do not correspond. The members of a union may be fewer than the column can hold. */
type Wrong<T, Row, D> =
  | Exclude<keyof T, FieldOf<Plain<Row, D>, D> | keyof Of<D, 'fields'>>
  | {
      [C in Plain<Row, D>]: FieldOf<C, D> extends infer F extends keyof T
        ? [null extends Row[C] ? true : false, C extends Json<D> ? unknown : NonNullable<T[F]>] extends [
            null extends T[F] ? true : false,
            C extends Json<D> ? unknown : Row[C],
          ]
          ? never
          : C
        : C
    }[Plain<Row, D>]

const camelCase = (name: string) => name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase())

/**
 * The codec of a table. The functions are generated with fixed keys, which is ten times as fast as a loop over the columns:
 * these run for every request. Their text has no names but those of the schema and of the domain.
 */
export function codecOf<T>() {
  return <N extends Table, const D extends Differences<T, Tables[N]>>(
    table: N,
    differences: D,
  ): [Wrong<T, Tables[N], D>] extends [never] ? Codec<T, Tables[N]> : { wrong: Wrong<T, Tables[N], D> } => {
    const { json = [], rename = {}, columns = {}, fields = {} }: Differences<T, Tables[N]> = differences
    const isJson = (name: string) => (json as readonly string[]).includes(name)
    const all = Object.entries<Column>(COLUMNS[table]).map(([column, { nullable }]) => ({
      column,
      nullable,
      field: (rename as Record<string, string>)[column] ?? camelCase(column),
    }))
    const encoded = all.map(({ column, field, nullable }) => {
      if (column in columns) return `${column}: made.${column}(from)`
      return `${column}: ${isJson(column) ? orNull(nullable, `from.${field}`, 'JSON.stringify') : `from.${field}`}`
    })
    const decoded = all.flatMap(({ column, field, nullable }) => {
      if (column in columns || field in fields) return []
      return `${field}: ${isJson(column) ? orNull(nullable, `from.${column}`, 'JSON.parse') : `from.${column}`}`
    })
    const made = Object.keys(fields).map((field) => `${field}: made.${field}(from)`)
    return { encode: generate(encoded, columns), decode: generate([...decoded, ...made], fields) } as never
  }
}

function orNull(nullable: boolean, value: string, convert: string): string {
  return nullable ? `${value} == null ? null : ${convert}(${value})` : `${convert}(${value})`
}

function generate(members: readonly string[], made: object): unknown {
  return new Function('made', `return (from) => ({ ${members.join(', ')} })`)(made)
}
