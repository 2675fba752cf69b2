/**
 * Typical phrases of spam, by its aim, in the languages of most spam. A phrase is listed only if honest receipts,
 * reminders and newsletters rarely use it; for families where that is less certain, several distinct phrases must match
 * (`wording-rules.ts`). Case, accents and punctuation do not matter; `*` matches any ending.
 */
export const PHRASES = {
  lottery: list(`
    you have won | you ve won | you are a winner | you re a winner | lucky winner | claim your prize |
    claim your reward | claim your winnings | winning ticket | winning numbers | lottery* | cash prize | prize money |
    selected as a winner | jackpot winner | your email was selected | has ganado | usted ha ganado |
    reclame su premio | reclama tu premio | ganador de la loteria | vous avez gagne | reclamez votre prix |
    gagnant de la loterie | sie haben gewonnen | du hast gewonnen | gewinn abholen | gewinnbenachrichtigung |
    hai vinto | ha vinto un premio | ritira il tuo premio | voce ganhou | voce foi sorteado | resgate seu premio |
    u heeft gewonnen | je hebt gewonnen | wygrales | wygrana czeka | odbierz nagrode | вы выиграли | ваш выигрыш |
    получите приз | kazandiniz | odulunuzu alin | 您中奖了 | 恭喜中奖 | 领取奖金 | 当選しました | 賞金を受け取 | 당첨되셨습니다 | vinnare av |
    du har vunnit`),
  advanceFee: list(`
    next of kin | barrister | strictly confidential | utmost confidence | central bank | beneficiary |
    transfer of funds | transfer the sum | transfer this money | transfer the funds | unclaimed funds | late husband |
    late father | late client | late president | dormant account | your bank account details | bank account details |
    inheritance fund | inheritance | million dollars | million united states dollars | million usd | million euros |
    million pounds | of the total sum | consignment box | diplomatic courier | god fearing | foreign partner |
    business proposal | dying of cancer | charity foundation | i am contacting you | processing fee | western union |
    herederos | millones de dolares | cuenta inactiva | propuesta de negocio | transferencia de fondos |
    estrictamente confidencial | millions de dollars | millions d euros | compte dormant | proposition d affaires |
    strictement confidentiel | je souffre d un cancer | faire un don | millionen dollar | millionen us dollar |
    millionen euro | streng vertraulich | nachste angehorige | erbschaft | milhoes de dolares | proposta de negocio |
    milioni di dollari | proposta d affari | eredita | миллионов долларов | строго конфиденциально | наследство |
    деловое предложение | milyon dolar | 遗产 | 百万美元`),
  stranger: list(`
    dear friend | dear beneficiary | dear beloved | dear sir madam | dear sir or madam | dear email user |
    dear winner | attention beneficiary | greetings in the name | hello dear | my dearest | dear account user |
    dear webmail user | querido amigo | estimado beneficiario | cher ami | cher beneficiaire | lieber freund |
    caro amico | caro amigo | дорогой друг | уважаемый получатель | sayin lehdar | 亲爱的朋友`),
  fastMoney: list(`
    make money fast | make money online | make money from home | earn money fast | earn money from home |
    earn money online | work from home and earn | financial freedom | extra income | passive income |
    be your own boss | get rich | double your money | double your income | double your investment | multi level |
    quit your job | easy money | money making system | per day from home | a week from home | guaranteed income |
    secret to wealth | gana dinero | dinero facil | ingresos extra | dinero desde casa | libertad financiera |
    gagnez de l argent | argent facile | revenus passifs | liberte financiere | geld verdienen | schnelles geld |
    passives einkommen | finanzielle freiheit | reich werden | guadagna soldi | soldi facili | guadagnare da casa |
    ganhe dinheiro | dinheiro facil | renda extra | snel geld verdienen | zarabiaj w domu | szybki zarobek |
    легкие деньги | заработок в интернете | пассивный доход | заработок без вложений | evden para kazan | kolay para |
    轻松赚钱 | 在家赚钱 | 簡単に稼 | 副業で稼`),
  crypto: list(`
    double your bitcoin | bitcoin giveaway | crypto giveaway | guaranteed returns | guaranteed profit* |
    risk free investment | bitcoin investment | crypto investment | trading robot | trading bot | bitcoin profit |
    bitcoin code | bitcoin era | daily returns | daily profit* | bitcoin mining profit | send bitcoin |
    btc to the address | duplica tus bitcoin | ganancias garantizadas | rendements garantis | garantierte rendite |
    garantierte gewinne | guadagni garantiti | lucro garantido | rendimentos garantidos | гарантированный доход |
    гарантированная прибыль | garantili kazanc | 稳赚不赔 | 高回报`),
  drugs: list(`
    viagra | cialis | levitra | sildenafil | tadalafil | xanax | valium | phentermine | ambien | tramadol |
    oxycodone | online pharmacy | canadian pharmacy | no prescription | without prescription | farmacia online |
    sin receta | pharmacie en ligne | sans ordonnance | online apotheke | ohne rezept | senza ricetta | sem receita |
    zonder recept | bez recepty | виагра | сиалис | без рецепта | recetesiz | 伟哥`),
  health: list(`
    lose weight fast | weight loss miracle | miracle cure | miracle pill | burn fat | fat burner* | keto gummies |
    cbd gummies | enlarge your | male enhancement | penis enlargement | anti aging secret | doctors hate |
    reverse diabetes | lose 10 pounds | lose 20 pounds | lose 30 pounds | baja de peso rapido | adelgaza rapido |
    quema grasa | perdez du poids | maigrir vite | brule graisse | schnell abnehmen | fettverbrenner | wundermittel |
    perdi peso velocemente | brucia grassi | perca peso rapido | emagreca rapido | schudno szybko | похудеть быстро |
    сжигание жира | увеличение члена | hizli kilo ver | 快速减肥`),
  adult: list(`
    xxx videos | xxx rated | porn* | hot girls | horny | live sex | sex cam | sex chat | adult dating | naked pics | nude photos |
    singles in your area | meet singles | hot singles | russian brides | milf | chicas calientes | sexo en vivo |
    mujeres solteras cerca | femmes celibataires | plan cul | sexe en direct | heisse frauen | geile frauen |
    sexkontakte | donne single | incontri hot | mulheres solteiras | sexo ao vivo | секс знакомства |
    горячие девушки | порно | интим знакомства | 约炮 | 裸聊 | 出会い系`),
  loan: list(`
    mortgage rates | lowest rates | refinance now | consolidate your debt | debt consolidation | bad credit |
    no credit check | debt free | pre approved loan | instant loan | payday loan | cash advance |
    personal loan offer | loan at 2 | loan at 3 | eliminate your debt | prestamo inmediato | prestamos sin aval |
    sin buro | credito inmediato | pret rapide | pret entre particuliers | credit sans justificatif | sofortkredit |
    kredit ohne schufa | prestito immediato | prestito tra privati | emprestimo imediato | emprestimo sem consulta |
    kredyt bez bik | chwilowka | займ без отказа | кредит без справок | деньги в долг срочно | aninda kredi | 无抵押贷款 |
    低息贷款 | 即日融資`),
  gambling: list(`
    online casino | casino bonus | free spins | no deposit bonus | welcome bonus | slot machine* | sports betting |
    betting tips | poker bonus | casino en linea | giros gratis | bono sin deposito | casino en ligne |
    tours gratuits | bonus sans depot | online spielbank | freispiele | bonus ohne einzahlung | casino online |
    giri gratis | bonus senza deposito | rodadas gratis | gratis spins | darmowe spiny | онлайн казино | фриспины |
    бонус без депозита | bedava bahis | canli bahis | deneme bonusu | casino siteleri | 在线赌场 | 博彩 | 真人娱乐 | オンラインカジノ |
    온라인 카지노 | 바카라`),
  replica: list(`
    replica watch* | rolex | luxury replica* | designer replica* | fake diploma | university degree without |
    buy a degree | cheap software | oem software | relojes replica | montres replique | replik uhren |
    replica orologi | копии часов | реплики часов | 高仿 | ブランドコピー`),
  promotion: list(`
    increase your traffic | first page of google | top of google | rank your website | seo services | seo packages |
    buy backlinks | website redesign | email lists | million email addresses | bulk email | buy followers |
    instagram followers | targeted leads | web design company | aumente su trafico | posicionamiento web barato |
    premiere page de google | erste seite bei google | prima pagina di google | primeira pagina do google |
    раскрутка сайта | база email | продвижение сайта недорого | 代开发票 | 代開發票 | 发票代开 | シート販売 名簿`),
  extortion: list(`
    your webcam | recorded you | i recorded a video | hacked your device | hacked your account |
    i have access to your | installed a trojan | installed malware | your contacts will | send the video |
    bitcoin wallet | btc wallet | pay in bitcoin | 48 hours to pay | your dirty secret | masturbat* | watching porn* |
    he hackeado | tu camara web | te he grabado | cartera de bitcoin | j ai pirate | votre webcam |
    portefeuille bitcoin | ich habe dich gehackt | ihre webcam | deine webcam | bitcoin adresse | ho hackerato |
    tua webcam | sua webcam | hackeei | взломал | вашу веб камеру | биткоин кошелек | 我入侵了 | 比特币钱包`),
  accountThreat: list(`
    account has been suspended | account has been limited | account has been locked | account will be closed |
    account will be suspended | account will be terminated | account will be deactivated | account is on hold |
    unusual activity | unusual sign in | unauthorized transaction | verify your account | verify your identity |
    confirm your identity | update your billing | update your payment | restore access | restore your account |
    within 24 hours | within 48 hours | mailbox is full | mailbox is almost full | mailbox quota | storage limit |
    validate your account | validate your email | permanent suspension | avoid suspension | avoid closure |
    failure to do so | su cuenta ha sido suspendida | su cuenta ha sido bloqueada | su cuenta sera cerrada |
    cuenta ha sido limitada | verifique su cuenta | verifique su identidad | en 24 horas | compte a ete suspendu |
    compte a ete bloque | compte sera cloture | compte sera suspendu | verifiez votre compte |
    confirmez votre identite | sous 24 heures | konto wurde gesperrt | konto wurde eingeschrankt |
    konto wird gesperrt | bestatigen sie ihre daten | verifizieren sie ihr konto | innerhalb von 24 stunden |
    ungewohnliche aktivitat* | account e stato sospeso | conto e stato bloccato | conto e stato sospeso |
    verifica il tuo account | confermare la tua identita | entro 24 ore | sua conta foi suspensa |
    sua conta foi bloqueada | sua conta sera | verifique sua conta | em 24 horas | confirme seus dados |
    rekening is geblokkeerd | account is geblokkeerd | binnen 24 uur | verifieer uw account |
    konto zostalo zablokowane | w ciagu 24 godzin | zweryfikuj swoje konto | ваш аккаунт заблокирован |
    счет заблокирован | карта заблокирована | подтвердите ваши данные | в течение 24 часов | hesabiniz askiya alindi |
    hesabiniz kapatilacak | 24 saat icinde | hesabinizi dogrulayin | 账户已被冻结 | 账户异常 | 验证您的账户 | 24小时内 | アカウントが停止 |
    アカウントを確認 | 24時間以内 | 異常なアクティビティ | 계정이 정지 | 24시간 이내`),
  pressure: list(`
    act now | act fast | act immediately | limited time | limited time offer | order now | buy now | call now |
    don t delay | don t miss out | risk free | money back | money back guarantee | 100 free | 100 guaranteed |
    satisfaction guaranteed | no obligation | no cost | absolutely free | free gift | free trial | free quote |
    click here | click below | apply now | sign up free | while supplies last | once in a lifetime |
    special promotion | no strings attached | what are you waiting for | expires today | last chance | final notice |
    this is not a scam | incredible deal | unbelievable offer | lowest price* | best price* | exclusive deal |
    haz clic aqui | haga clic aqui | oferta limitada | actua ahora | compra ahora | sin compromiso |
    completamente gratis | regalo gratis | garantia de devolucion | cliquez ici | offre limitee | agissez maintenant |
    sans engagement | entierement gratuit | cadeau gratuit | satisfait ou rembourse | hier klicken |
    klicken sie hier | jetzt handeln | jetzt bestellen | nur heute | 100 gratis | vollig kostenlos |
    geld zuruck garantie | ohne risiko | clicca qui | offerta limitata | agisci ora | senza impegno |
    completamente gratuito | soddisfatti o rimborsati | clique aqui | aja agora | sem compromisso |
    totalmente gratis | compre agora | klik hier | alleen vandaag | bestel nu | kliknij tutaj | tylko dzis |
    kup teraz | нажмите здесь | только сегодня | закажите сейчас | абсолютно бесплатно | успейте | buraya tikla* |
    hemen tikla* | sinirli sure | tamamen ucretsiz | 立即点击 | 点击这里 | 限时优惠 | 免费领取 | 今だけ | 今すぐクリック | 完全無料`),
  urgency: list(`
    urgent | urgent response | urgent action | immediate action | action required immediately | respond immediately |
    immediate response | final warning | last warning | urgent notice | final notice | act now | urgente |
    ultimo aviso | accion inmediata | dernier avertissement | action immediate | dringend | letzte mahnung |
    sofort handeln | letzte warnung | ultimo avviso | azione immediata | pilne | ostatnie ostrzezenie | срочно |
    последнее предупреждение | acil | son uyari | 紧急 | 緊急 | 至急 | 긴급`),
  lure: list(`
    free money | free gift | free iphone | free cash | free gift card | gift card winner | you won | you have won |
    winner | congratulations you | cash prize | jackpot | make money | earn money | earn up to | get paid | get rich |
    100 free | bonus cash | iphone gratis | gratis iphone | tarjeta de regalo gratis | dinero gratis | premio |
    has ganado | vous avez gagne | cadeau gratuit | gagnant | argent gratuit | gewinner | sie haben gewonnen |
    gratis geschenk | geld verdienen | hai vinto | vincitore | regalo gratis | voce ganhou | gratis cadeau |
    wygrales | darmowy prezent | вы выиграли | бесплатный подарок | выигрыш | kazandiniz | hediye kazan* | 中奖 | 免费领取 |
    当選 | 무료 증정`),
  denial: list(`
    this is not spam | not a spam | this is not a scam | to be removed from | remove me in the subject | bill s 1618 |
    complies with all | one time mailing | you were selected to receive | your address was obtained |
    este mensaje no es spam | esto no es spam | ceci n est pas un spam | dies ist kein spam | keine spam mail |
    questo non e spam | isto nao e spam | это не спам`),
} as const satisfies Readonly<Record<string, readonly string[]>>;

function list(phrases: string): readonly string[] {
  return phrases.split("|").map((phrase) => phrase.trim());
}

export type PhraseFamily = keyof typeof PHRASES;
