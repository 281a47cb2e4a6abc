import { usage } from './failure.ts'
import { flag, text, type ValuesOf } from './options.ts'
import { type Cell, table } from './output.ts'
import { paged } from './paged.ts'
import { oneLine } from './terminal-text.ts'
import type { Context } from './verb.ts'

/** As many rows as a person looks through. */
const PAGE = 50
/** The most that the server sends in one reply. */
const REPLY = 1_000
/** More are not counted: each reply takes time. */
const MOST_COUNTED = 10_000

export const LIST_OPTIONS = {
  limit: text('<number>', `at most this many; ${PAGE} by default on a terminal, otherwise all`, {
    short: 'n',
  }),
  all: flag('all of them'),
}

export type ListOptions = ValuesOf<typeof LIST_OPTIONS>

/** How rows appear to a person. */
export interface Rows<T> {
  /** In the plural: `agents`. */
  readonly things: string
  /** What to say if there are none. */
  readonly none: string
  /** Throws where that would mislead. */
  onNone?(): Promise<void>
  readonly heading: readonly string[]
  cells(row: T): readonly Cell[]
  /** Headings to leave out where a terminal is too narrow, the first ones first. The last column is cut to the room. */
  readonly spare?: readonly string[]
  /** How narrow the last column may become before another one is left out. */
  readonly least?: number
}

/**
 * Writes the rows that `read` returns: all of them, or as many as the options say. At a terminal it writes the first
 * page, and says how many there are. Throws `CliError` (usage) for wrong options.
 */
export async function showList<T>(
  context: Context,
  options: ListOptions,
  read: (page: { readonly limit: number }) => AsyncIterable<T>,
  shape: Rows<T>,
): Promise<void> {
  const { out, stdout } = context
  const limit = limitOf(options)
  const isPage = limit === undefined && options.all !== true && !out.isJson && stdout.isTTY === true
  const most = limit ?? (isPage ? PAGE : Number.POSITIVE_INFINITY)
  const rows: T[] = []
  let count = 0
  for await (const row of read({ limit: isPage ? REPLY : Math.min(most, REPLY) })) {
    count += 1
    if (rows.length < most) rows.push(row)
    if (isPage ? count > MOST_COUNTED : count >= most) break
    if (count % REPLY === 0) out.progress(`Counting the ${shape.things}: ${inDigits(count)}`)
  }
  if (count === 0) await shape.onNone?.()
  await showRows(context, rows, shape)
  if (isPage && count > rows.length)
    out.note(`${rows.length} of ${total(count)} ${shape.things}. See more with --limit NUMBER or --all.`)
}

/** Writes all the rows, through the user's pager if a terminal cannot show them at once. */
export async function showRows<T>(context: Context, rows: readonly T[], shape: Rows<T>): Promise<void> {
  const isNone = rows.length === 0
  const { stdout } = context
  const columns = (stdout.isTTY === true ? stdout.columns : undefined) || Number.POSITIVE_INFINITY
  await paged(context, ({ out }) =>
    out.show(rows, () => {
      if (isNone) return ''
      const all = { heading: shape.heading, rows: rows.map(shape.cells) }
      const { spare, least = LEAST_CUT } = shape
      const { heading, rows: cells } = spare === undefined ? all : fitted(all, spare, { columns, least })
      return table(heading, cells, out.paint)
    }),
  )
  if (isNone && !context.out.isJson) context.out.note(shape.none)
}

interface Cells {
  readonly heading: readonly string[]
  readonly rows: readonly (readonly Cell[])[]
}

const LEAST_CUT = 10

interface Room {
  readonly columns: number
  readonly least: number
}

/** Leaves out columns of `spare`, and cuts the last one, so that the lines fit. */
function fitted({ heading, rows }: Cells, spare: readonly string[], room: Room): Cells {
  const { columns, least } = room
  const last = heading.length - 1
  const widths = heading.map((text, at) =>
    Math.max(text.length, ...rows.map((row) => textOf(row[at]).length)),
  )
  const before = widths.slice(0, -1).reduce((sum, width) => sum + width + 2, 0)
  const own = widths[last] ?? 0
  if (before + own <= columns) return { heading, rows }
  const [first, ...others] = spare
  if (first === undefined || before + Math.min(own, least) <= columns) {
    const left = Math.max(columns - before, 1)
    const cut = rows.map((row) => [...row.slice(0, -1), shortened(textOf(row[last]), left)])
    return { heading, rows: cut }
  }
  const at = heading.indexOf(first)
  const rest = {
    heading: heading.filter((_, column) => column !== at),
    rows: rows.map((row) => row.filter((_, column) => column !== at)),
  }
  return fitted(rest, others, room)
}

const textOf = (cell: Cell = '') => oneLine(typeof cell === 'string' ? cell : cell.text)

/** The text in at most so many UTF-16 code units, none of them half a character. */
export function shortened(text: string, most: number): string {
  if (text.length <= most) return text
  const kept = text.slice(0, most - 1)
  return `${/[\uD800-\uDBFF]$/.test(kept) ? kept.slice(0, -1) : kept}…`
}

const total = (count: number) =>
  count > MOST_COUNTED ? `more than ${inDigits(MOST_COUNTED)}` : inDigits(count)
const inDigits = (count: number) => String(count).replace(/\B(?=(?:\d{3})+$)/g, ',')

function limitOf({ limit, all }: ListOptions): number | undefined {
  if (limit === undefined) return undefined
  if (all === true) throw usage('--limit and --all exclude each other.')
  if (/^[1-9]\d{0,8}$/.test(limit)) return Number(limit)
  throw usage('--limit must be a whole number, at least 1.', 'Write it in digits.')
}

/** All items of a listing, or the first `limit`. */
export async function collect<T>(items: AsyncIterable<T>, limit = Number.POSITIVE_INFINITY): Promise<T[]> {
  const all: T[] = []
  if (limit <= 0) return all
  for await (const item of items) {
    all.push(item)
    if (all.length >= limit) break
  }
  return all
}
