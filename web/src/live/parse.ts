/** One event of a stream of server-sent events (WHATWG HTML §9.2). */
export interface StreamEvent {
  readonly id: string | undefined
  readonly event: string
  readonly data: string
}

/** Text in, whole events out. Comments are dropped. */
export function createParser(onEvent: (event: StreamEvent) => void): (text: string) => void {
  let rest = ''
  return (text) => {
    const blocks = (rest + text).split('\n\n')
    rest = blocks.pop() ?? ''
    for (const block of blocks) {
      const event = readBlock(block)
      if (event !== undefined) onEvent(event)
    }
  }
}

function readBlock(block: string): StreamEvent | undefined {
  const fields: Record<string, string> = {}
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':')
    if (colon <= 0) continue
    const name = line.slice(0, colon)
    const value = line.slice(colon + 1).replace(/^ /, '')
    fields[name] = fields[name] === undefined ? value : `${fields[name]}\n${value}`
  }
  if (Object.keys(fields).length === 0) return undefined
  return { id: fields['id'], event: fields['event'] ?? 'message', data: fields['data'] ?? '' }
}
