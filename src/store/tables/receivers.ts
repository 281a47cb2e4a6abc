import type { StoredReceiver } from '../../domain/receiver.ts'
import type { Step } from '../engine/change.ts'
import type { Engine } from '../engine/engine.ts'
import { run } from '../engine/run.ts'
import type { ReceiverRow } from '../schema/rows.ts'
import { codecs } from './codecs.ts'

const { receivers } = codecs

/** How far each receiver of notifications has been told. A row belongs to the node that holds it. */
export function createReceivers({ build, read }: Engine) {
  return {
    find: async (name: string): Promise<StoredReceiver | undefined> =>
      (await read<ReceiverRow>(build.selectFrom('receivers').selectAll().where('name', '=', name))).map(
        receivers.decode,
      )[0],
    /** Refused as not unique when another node was first. */
    insert: (receiver: StoredReceiver): Step => ({
      op: 'insert',
      table: 'receivers',
      row: receivers.encode(receiver),
    }),
    /** Refused when another node has taken or changed it since it was read. */
    replace: (before: StoredReceiver, after: StoredReceiver): Step =>
      run(
        build
          .updateTable('receivers')
          .set(receivers.encode(after))
          .where('name', '=', before.name)
          .where('position', '=', before.position)
          .where('holder', '=', before.holder)
          .where('held_until', '=', before.heldUntil),
        1,
      ),
  }
}
