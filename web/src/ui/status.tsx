const LOOKS = {
  /** As it should be. */
  ok: { mark: '●', text: 'text-muted', shape: 'text-accent' },
  /** Somebody or something is waited for. */
  wait: { mark: '▲', text: 'text-wait font-medium', shape: 'text-wait' },
  /** It failed, and needs a person. */
  bad: { mark: '■', text: 'text-bad font-semibold', shape: 'text-bad' },
  /** Over, or nothing known. */
  off: { mark: '○', text: 'text-muted', shape: 'text-muted' },
} as const
export type Look = keyof typeof LOOKS

/** A state: a shape and a word, so that colour is never needed to read it. */
export function Status({ look, children }: { readonly look: Look; readonly children: string }) {
  return (
    <span className={`inline-flex items-baseline gap-1.5 whitespace-nowrap ${LOOKS[look].text}`}>
      <Mark look={look} />
      {children}
    </span>
  )
}

/** The shape alone, where words stand beside it. */
export function Mark({ look }: { readonly look: Look }) {
  const { mark, shape } = LOOKS[look]
  return (
    <span aria-hidden="true" className={`text-[10px] ${shape}`}>
      {mark}
    </span>
  )
}
