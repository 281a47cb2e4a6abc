/**
 * Replies that are ready in one turn of the event loop go out together when it ends, after all that arrived in it has
 * been worked on. A write wakes the client's process if that sleeps, which on one machine is a quarter of the price of a
 * small reply: one after the other they wake it once (ADR 0020).
 */
let ready: (() => void)[] = []
/** So many go before the end: of more, what each holds would outlive the young generation of the heap. */
const MOST = 32

function letGo(): void {
  const all = ready
  ready = []
  for (const one of all) one()
}

/** What the work resolves with, at the end of the turn in which it does at the latest. A failure does not wait. */
export function atEndOfTurn<T>(work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    work.then((value) => {
      if (ready.length === 0) setImmediate(letGo)
      ready.push(() => resolve(value))
      if (ready.length >= MOST) letGo()
    }, reject)
  })
}
