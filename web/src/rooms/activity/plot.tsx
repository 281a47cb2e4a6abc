import { type RefObject, useEffect, useEffectEvent, useRef, useSyncExternalStore } from 'react'
import UPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import type { Points } from './points.ts'

interface Props {
  readonly points: Points
  readonly height: number
  /** The point under the pointer. */
  readonly onPoint: (index: number | undefined) => void
  /** Epoch seconds. */
  readonly onBrush: (from: number, to: number) => void
}

const DAY_SECONDS = 86_400
const TOKENS = ['accent', 'muted', 'bad', 'line'] as const
type Colours = Readonly<Record<(typeof TOKENS)[number], string>>

/** The chart itself: for eyes and pointers. Its numbers stand beside it as text (`chart.tsx`). */
export function Plot({ points, height, onPoint, onBrush }: Props) {
  const box = useRef<HTMLDivElement>(null)
  const plot = useRef<UPlot>(undefined)
  const theme = useTheme()
  const point = useEffectEvent(onPoint)
  const brush = useEffectEvent(onBrush)
  const current = useEffectEvent(() => dataOf(points))
  const step = points.stepSeconds
  const keys = points.lines.map(({ key }) => key).join(' ')
  // biome-ignore lint/correctness/useExhaustiveDependencies: the colours are those of the theme
  useEffect(() => {
    const element = box.current
    if (element === null) return undefined
    const one = new UPlot(
      optionsOf({
        keys: keys.split(' '),
        step,
        width: element.clientWidth,
        height,
        colours: coloursIn(element),
        font: `12px ${getComputedStyle(element).fontFamily}`,
        onPoint: (index) => point(index),
        onBrush: (from, to) => brush(from, to),
      }),
      current(),
      element,
    )
    plot.current = one
    const observer = new ResizeObserver(() => one.setSize({ width: element.clientWidth, height }))
    observer.observe(element)
    return () => {
      observer.disconnect()
      one.destroy()
    }
  }, [theme, keys, step, height])
  useDrawn(plot, points)
  return <div ref={box} className="h-full w-full overflow-hidden" />
}

function useDrawn(plot: RefObject<UPlot | undefined>, points: Points): void {
  useEffect(() => {
    plot.current?.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
    plot.current?.setData(dataOf(points))
  }, [plot, points])
}

const dataOf = ({ times, lines }: Points): UPlot.AlignedData => [
  [...times],
  ...lines.map(({ counts }) => [...counts]),
]

interface Wanted {
  readonly keys: readonly string[]
  readonly step: number
  readonly width: number
  readonly height: number
  readonly colours: Colours
  readonly font: string
  readonly onPoint: Props['onPoint']
  readonly onBrush: Props['onBrush']
}

function optionsOf({ keys, step, width, height, colours, font, onPoint, onBrush }: Wanted): UPlot.Options {
  const series: Readonly<Record<string, UPlot.Series>> = {
    issued: { fill: colours.accent, width: 0, ...bars(0.75, 18) },
    ended: { stroke: colours.muted, width: 1.5, dash: [4, 3], ...steps() },
    denied: { fill: colours.bad, width: 0, ...bars(0.3, 6) },
  }
  const axis = { stroke: colours.muted, font, ticks: { show: false }, gap: 6 }
  return {
    width,
    height,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    // Times are UTC everywhere in the console.
    tzDate: (seconds) => UPlot.tzDate(new Date(seconds * 1_000), 'Etc/UTC'),
    cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false } },
    // The last count needs room, too: it stands at the beginning of its time.
    scales: {
      x: { range: (_, first, last) => [first, last + step] },
      y: { range: (_, _least, most) => [0, Math.max(4, Math.ceil(most * 1.08))] },
    },
    axes: [
      {
        ...axis,
        size: 24,
        grid: { show: false },
        values: (_, times, _axis, _space, step) => times.map((time) => clockOf(time, step)),
      },
      {
        ...axis,
        size: 44,
        space: 28,
        grid: { stroke: colours.line, width: 1 },
        incrs: [
          1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 1e7, 1e8,
        ],
        values: (_, counts) => counts.map(short),
      },
    ],
    series: [{}, ...keys.map((key) => series[key] ?? {})],
    hooks: {
      setCursor: [({ cursor }) => onPoint(cursor.idx ?? undefined)],
      setSelect: [
        (plot) => {
          const { left, width: wide } = plot.select
          if (wide < 4) return
          onBrush(plot.posToVal(left, 'x'), plot.posToVal(left + wide, 'x'))
        },
      ],
    },
  }
}

/** From the beginning of its time to the right. */
function bars(share: number, most: number): UPlot.Series {
  const paths = UPlot.paths.bars?.({ size: [share, most], align: 1 })
  return { ...(paths === undefined ? {} : { paths }), points: { show: false } }
}

function steps(): UPlot.Series {
  const paths = UPlot.paths.stepped?.({ align: 1 })
  return { ...(paths === undefined ? {} : { paths }), points: { show: false } }
}

function clockOf(seconds: number, step: number): string {
  const [date = '', time = ''] = new Date(seconds * 1_000).toISOString().split('T')
  return step >= DAY_SECONDS || time.startsWith('00:00') ? date.slice(5) : time.slice(0, 5)
}

const SHORT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const short = (count: number): string => SHORT.format(count)

/** A canvas knows no custom properties: the colours of the tokens, as the theme has them now. */
function coloursIn(element: HTMLElement): Colours {
  const probe = document.createElement('span')
  element.append(probe)
  const found = TOKENS.map((name) => {
    probe.style.color = `var(--color-${name})`
    return [name, getComputedStyle(probe).color] as const
  })
  probe.remove()
  return Object.fromEntries(found) as Colours
}

const dark = matchMedia('(prefers-color-scheme: dark)')

/** Changes when the colours do. */
function useTheme(): string {
  return useSyncExternalStore(
    (listener) => {
      const observer = new MutationObserver(listener)
      observer.observe(document.documentElement, { attributeFilter: ['data-theme'] })
      dark.addEventListener('change', listener)
      return () => {
        observer.disconnect()
        dark.removeEventListener('change', listener)
      }
    },
    () => `${document.documentElement.dataset['theme'] ?? ''} ${dark.matches}`,
  )
}
