import { read, utils, write } from 'xlsx'
import { use } from '../lib/use.mjs'

export default use('xlsx', 'writes a workbook, and reads it', [{ name: 'Ada', orders: 7 }], () => {
  const workbook = utils.book_new()
  utils.book_append_sheet(workbook, utils.json_to_sheet([{ name: 'Ada', orders: 7 }]), 'Orders')
  const again = read(write(workbook, { type: 'buffer', bookType: 'xlsx' }))
  return utils.sheet_to_json(again.Sheets.Orders)
})
