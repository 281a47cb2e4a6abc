import { areaOf, type Count, sentenceOf } from './history.ts'

interface Props {
  /** What is counted: "Live credentials". */
  readonly what: string
  readonly history: readonly Count[]
  readonly now: number
  readonly className: string
}

/** Counts of a day as an area, which fills its box. What it shows is also its name. */
export function Area({ what, history, now, className }: Props) {
  const paths = areaOf([...history.map(({ count }) => count), now])
  return (
    <svg
      role="img"
      aria-label={sentenceOf(what, history, now)}
      viewBox="0 0 1000 100"
      preserveAspectRatio="none"
      className={className}
    >
      {paths !== undefined && history.length > 0 && (
        <>
          <path d={paths.area} className="fill-accent-soft" />
          <path
            d={paths.line}
            className="fill-none stroke-accent"
            strokeWidth="1.5"
            vectorEffect="non-scaling-stroke"
          />
        </>
      )}
    </svg>
  )
}
