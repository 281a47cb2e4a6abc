import { useVirtualizer } from '@tanstack/react-virtual'
import { type KeyboardEvent, type ReactNode, useEffect, useLayoutEffect, useRef, useState } from 'react'
import { rowHeight } from './density.ts'
import { useKeys } from './keys.ts'

export interface Column<T> {
  readonly name: string
  /** A track of `grid-template-columns`, such as `minmax(0, 2fr)` or `96px`. */
  readonly width: string
  readonly cell: (row: T) => ReactNode
  /** Left out where the list is narrower than this many px. */
  readonly from?: number
}

interface Props<T> {
  /** For those who cannot see it: "Credentials". */
  readonly label: string
  readonly rows: readonly T[]
  readonly columns: readonly Column<T>[]
  readonly keyOf: (row: T) => string
  readonly onOpen: (row: T) => void
  /** The one that is open beside the list. */
  readonly openKey?: string | undefined
  /** Asks for the next page; undefined: there is none. */
  readonly more?: (() => void) | undefined
  /** With it rows can be selected, by X or by their box. */
  readonly selected?: ReadonlySet<string>
  readonly onSelect?: (keys: ReadonlySet<string>) => void
  /** What a row is called: "Select cred_…". */
  readonly nameOf?: (row: T) => string
  /** Rows that need a person are marked. */
  readonly isBad?: (row: T) => boolean
}

/**
 * A list of any length: only what is seen is in the page. J and K move, Enter opens, X selects. The whole keyboard works without a
 * mouse: the list is one stop of the Tab key, and the row under the cursor is the active descendant.
 */
export function List<T>(props: Props<T>) {
  const { rows, columns, keyOf, onOpen, more, label } = props
  const scroller = useRef<HTMLDivElement>(null)
  const [cursor, setCursor] = useState<Cursor>({ index: 0, key: undefined })
  const width = useWidth(scroller)
  const shown = columns.filter(({ from = 0 }) => width === 0 || width >= from)
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: rowHeight,
    overscan: 12,
    getItemKey: (index) => keyOf(rows[index] as T),
  })
  const items = virtual.getVirtualItems()
  const last = items.at(-1)?.index ?? 0
  useEffect(() => {
    if (last >= rows.length - 20) more?.()
  }, [last, rows.length, more])
  const at = placeOf(cursor, rows, keyOf)
  const point = (index: number) => {
    const row = rows[index]
    setCursor({ index, key: row === undefined ? undefined : keyOf(row) })
  }
  const move = (to: number) => {
    const next = Math.max(0, Math.min(rows.length - 1, to))
    point(next)
    virtual.scrollToIndex(next)
    scroller.current?.focus({ preventScroll: true })
  }
  const toggle = useToggle(props)
  const act = (work: (row: T) => void) => () => {
    const row = rows[at]
    if (row !== undefined) work(row)
  }
  useKeys({
    J: () => move(at + 1),
    K: () => move(at - 1),
    X: toggle === undefined ? undefined : act(toggle),
  })
  const onKeyDown = (event: KeyboardEvent) => {
    const to = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      Home: 0,
      End: rows.length - 1,
      PageDown: at + 12,
      PageUp: at - 12,
    }[event.key]
    if (to !== undefined) {
      event.preventDefault()
      move(to)
    } else if (event.key === 'Enter' && event.target === scroller.current) {
      event.preventDefault()
      act(onOpen)()
    }
  }
  const tracks = [...(toggle === undefined ? [] : ['28px']), ...shown.map(({ width: one }) => one)].join(' ')
  return (
    <div
      ref={scroller}
      role="grid"
      aria-label={label}
      aria-rowcount={more === undefined ? rows.length + 1 : -1}
      aria-multiselectable={toggle === undefined ? undefined : true}
      aria-activedescendant={rows.length === 0 ? undefined : `row-${at}`}
      tabIndex={0}
      onKeyDown={onKeyDown}
      className="group/list h-full overflow-auto outline-offset-[-2px]"
    >
      <Head columns={shown} tracks={tracks} isSelectable={toggle !== undefined} />
      <div role="rowgroup" className="relative" style={{ height: virtual.getTotalSize() }}>
        {items.map(({ index, start, size, key }) => (
          <Row
            key={key}
            {...props}
            columns={shown}
            row={rows[index] as T}
            index={index}
            top={start}
            height={size}
            tracks={tracks}
            isCursor={index === at}
            onPoint={() => point(index)}
            toggle={toggle}
          />
        ))}
      </div>
    </div>
  )
}

/** On a very wide window the columns stay near each other; a row is as wide as the window. */
const INSET = 'pl-4 pr-[max(16px,100%-1680px)]'

interface Cursor {
  readonly index: number
  /** Of the row that it was put on; undefined: it was never moved. */
  readonly key: string | undefined
}

/** Rows that come in above do not move the cursor to another one. */
function placeOf<T>({ index, key }: Cursor, rows: readonly T[], keyOf: (row: T) => string): number {
  const row = rows[index]
  if (key === undefined || (row !== undefined && keyOf(row) === key)) return Math.min(index, rows.length - 1)
  const found = rows.findIndex((one) => keyOf(one) === key)
  return found === -1 ? Math.min(index, rows.length - 1) : found
}

function useToggle<T>({ selected, onSelect, keyOf }: Props<T>): ((row: T) => void) | undefined {
  if (selected === undefined || onSelect === undefined) return undefined
  return (row) => {
    const next = new Set(selected)
    if (!next.delete(keyOf(row))) next.add(keyOf(row))
    onSelect(next)
  }
}

function Head<T>({
  columns,
  tracks,
  isSelectable,
}: {
  readonly columns: readonly Column<T>[]
  readonly tracks: string
  readonly isSelectable: boolean
}) {
  return (
    <div role="rowgroup" className="sticky top-0 z-10 border-b border-line bg-canvas">
      <div
        role="row"
        aria-rowindex={1}
        className={`grid h-8 items-center gap-x-4 text-xs text-muted ${INSET}`}
        style={{ gridTemplateColumns: tracks }}
      >
        {isSelectable && (
          <span role="columnheader">
            <span className="sr-only">Selected</span>
          </span>
        )}
        {columns.map(({ name }) => (
          <span role="columnheader" key={name} className="truncate">
            {name}
          </span>
        ))}
      </div>
    </div>
  )
}

interface RowProps<T> extends Props<T> {
  readonly row: T
  readonly index: number
  readonly top: number
  readonly height: number
  readonly tracks: string
  readonly isCursor: boolean
  readonly onPoint: () => void
  readonly toggle: ((row: T) => void) | undefined
}

function Row<T>(props: RowProps<T>) {
  const {
    row,
    index,
    top,
    height,
    tracks,
    columns,
    isCursor,
    keyOf,
    openKey,
    isBad,
    onOpen,
    onPoint,
    toggle,
  } = props
  const key = keyOf(row)
  const isOpen = openKey === key
  const isSelected = props.selected?.has(key) === true
  const paint =
    isOpen || isSelected ? 'bg-accent-soft' : isBad?.(row) === true ? 'bg-bad-soft' : 'hover:bg-sunken'
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the grid, which has the focus
    <div
      role="row"
      id={`row-${index}`}
      aria-rowindex={index + 2}
      aria-selected={toggle === undefined ? isOpen : isSelected}
      onClick={() => {
        onPoint()
        onOpen(row)
      }}
      style={{ gridTemplateColumns: tracks, transform: `translateY(${top}px)`, height }}
      className={`absolute inset-x-0 top-0 grid cursor-pointer items-center gap-x-4 border-b border-line/60 ${INSET} ${paint} ${isCursor ? 'group-focus-within/list:shadow-[inset_3px_0_0_var(--color-accent)]' : ''}`}
    >
      {toggle !== undefined && (
        <span role="gridcell" className="flex items-center">
          <input
            type="checkbox"
            tabIndex={-1}
            className="size-4"
            aria-label={`Select ${props.nameOf?.(row) ?? key}`}
            checked={isSelected}
            onClick={(event) => event.stopPropagation()}
            onChange={() => toggle(row)}
          />
        </span>
      )}
      {columns.map(({ name, cell }) => (
        <span role="gridcell" key={name} className="min-w-0 truncate">
          {cell(row)}
        </span>
      ))}
    </div>
  )
}

function useWidth(ref: { readonly current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0)
  // Before anything is drawn, so that no column appears only to go.
  useLayoutEffect(() => {
    const element = ref.current
    if (element === null) return undefined
    const measure = () => setWidth(element.clientWidth)
    measure()
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    return () => observer.disconnect()
  }, [ref])
  return width
}
