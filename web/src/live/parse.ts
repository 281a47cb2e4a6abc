/** One event of a stream of server-sent events (WHATWG HTML §9.2). */
export interface StreamEvent {
  readonly id: string | undefined
  readonly event: string
  /** Undefined: nothing has happened, but `id` is the place to go on from. */
  readonly data: string | undefined
}

/** Text in, whole events out. Comments, and blocks that hold neither data nor a place, are dropped. */
export function createParser(onEvent: (event: StreamEvent) => void): (text: string) => void {
  let rest = ''
  return (text) => {
    const blocks = (rest + text).split('\n\n')
    rest = blocks.pop() ?? ''
    for (const block of blocks) {
      const event = readBlock(block)
      if (event.id !== undefined || event.data !== undefined) onEvent(event)
    }
  }
}

function readBlock(block: string): StreamEvent {
  const fields: Record<string, string> = {}
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':')
    if (colon <= 0) continue
    const name = line.slice(0, colon)
    const value = line.slice(colon + 1).replace(/^ /, '')
    fields[name] = name === 'data' && fields[name] !== undefined ? `${fields[name]}\n${value}` : value
  }
  return { id: fields['id'], event: fields['event'] ?? 'message', data: fields['data'] }
}
