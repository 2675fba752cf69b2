/** A message that tests the built-in filter. */
export interface Sample {
  readonly name: string;
  readonly subject: string;
  readonly html: string;
  /** `Shop <orders@shop.test>` by default. */
  readonly from?: string;
}

const preheader = (text: string) =>
  `<div style="display:none;font-size:1px;color:#ffffff;line-height:1px;max-height:0;max-width:0;opacity:0;overflow:hidden">${text}${"&zwnj;&nbsp;".repeat(80)}</div>`;
const button = (href: string, label: string) =>
  `<table role="presentation"><tr><td style="border-radius:4px" bgcolor="#1a73e8"><a href="${href}" style="display:inline-block;padding:12px 24px;color:#ffffff;text-decoration:none">${label}</a></td></tr></table>`;
const product = (name: string, price: string) =>
  `<tr><td style="font-size:0px;padding:0"><div style="font-size:13px;color:#333333"><img src="https://cdn.shop.test/${name.length}.jpg" width="120" alt="${name}"><p>${name}</p><p><b>${price}</b></p></div></td></tr>`;

/** Mail that its recipients expect. */
export const HAM: readonly Sample[] = [
  {
    name: "a receipt",
    subject: "Your receipt from Corner Bakery: $24.50",
    html: `<h1>Thank you, Ann!</h1><p>We charged your card ending in XXX 4242.</p><table>${product("Sourdough bread", "$8.50")}${product("Coffee beans, 1 kg", "$16.00")}</table><p>Total: $24.50. Questions? Just reply to this e-mail.</p>`,
  },
  {
    name: "a password reset",
    subject: "Reset your password",
    html: `<p>Hi Ann,</p><p>Somebody, hopefully you, asked to reset the password of your account. The link works for 60 minutes.</p>${button("https://app.shop.test/reset?token=Zm9vYmFy", "Reset password")}<p>If the button does not work, copy this address: <a href="https://app.shop.test/reset?token=Zm9vYmFy">https://app.shop.test/reset?token=Zm9vYmFy</a></p><p>If you did not ask for this, ignore this message; your password stays as it is.</p>`,
  },
  {
    name: "an address to confirm",
    subject: "Please confirm your e-mail address",
    html: `<p>Welcome to Fieldnotes! Please confirm your address within 24 hours so that we can finish setting up your account.</p>${button("https://fieldnotes.test/confirm/abc", "Confirm address")}<p>See you soon,<br>the Fieldnotes team</p>`,
  },
  {
    name: "a one-time code",
    subject: "Your code is 482913",
    html: "<p>Your sign-in code is</p><h2>482913</h2><p>It is valid for ten minutes. Never give it to anybody; we will not ask for it on the phone.</p>",
  },
  {
    name: "a security alert",
    subject: "New sign-in to your account",
    html: `<p>Hello Ann,</p><p>We noticed an unusual sign-in from Vienna, Austria (Firefox on Linux). If this was you, there is nothing to do. If it was not, please secure your account and change your password.</p>${button("https://id.bank.test/security", "Review activity")}`,
  },
  {
    name: "a newsletter with a preview line and many images",
    subject: "Spring is here: 12 new recipes 🌱",
    html: `${preheader("Asparagus, rhubarb and wild garlic: what our kitchen has been cooking this month, with a menu for Easter.")}<h1>Spring kitchen</h1><p>Dear readers, the markets are full again. Our cooks have put together twelve recipes that take less than half an hour, from asparagus risotto to rhubarb crumble.</p><table>${["Asparagus risotto with lemon", "Wild garlic pesto on toast", "Rhubarb crumble with oats", "Radish salad with herbs", "Pea soup with fresh mint"].map((name) => product(name, "30 minutes")).join("")}</table><p>You are receiving this because you signed up on our site. <a href="https://kitchen.test/u/1">Unsubscribe</a></p>`,
  },
  {
    name: "a shop's sale",
    subject: "Summer sale: up to 50% off ends Sunday",
    html: `${preheader("Dresses, shirts and sandals at half the price. Free delivery on orders over 50 euros.")}<h1>Summer sale</h1><p>Our limited time summer sale is on. Shop dresses, shirts and sandals at up to half the price until Sunday night, with free delivery for orders over 50 €.</p>${button("https://shop.test/sale", "Shop now")}<table>${product("Linen dress", "49 €")}${product("Leather sandals", "35 €")}</table><p>Prices include VAT. <a href="https://shop.test/unsubscribe">Unsubscribe</a></p>`,
  },
  {
    name: "a dispatch note",
    subject: "Your parcel is on its way",
    html: `<p>Hi Ben, your order 10-4431 has left our warehouse.</p><p>Carrier: DHL, tracking number <a href="https://tracking.shop.test/JD014600">JD014600006228974</a></p><p>Expected on Tuesday, 24 November.</p>`,
  },
  {
    name: "an invoice in German",
    subject: "Ihre Rechnung Nr. 2026-1187",
    html: `<p>Sehr geehrte Frau Müller,</p><p>vielen Dank für Ihren Auftrag. Anbei erhalten Sie die Rechnung über 1.249,00 €. Bitte überweisen Sie den Betrag innerhalb von 14 Tagen auf unser Konto.</p><p>Mit freundlichen Grüßen<br>Tischlerei Huber</p>`,
  },
  {
    name: "a German reset of a password",
    subject: "Passwort zurücksetzen",
    html: `<p>Hallo Jörg,</p><p>um ein neues Passwort zu vergeben, klicken Sie bitte auf den folgenden Link. Er ist 30 Minuten gültig.</p><p><a href="https://konto.laden.test/pw/1">Neues Passwort vergeben</a></p>`,
  },
  {
    name: "a French confirmation",
    subject: "Confirmation de votre commande n° 5521",
    html: `<p>Bonjour Élodie,</p><p>Nous avons bien reçu votre commande. Elle sera expédiée sous 24 heures. Vous pouvez suivre sa progression dans votre espace client.</p><p><a href="https://boutique.test/suivi/5521">Suivre ma commande</a></p><p>Merci de votre confiance !</p>`,
  },
  {
    name: "a Spanish appointment",
    subject: "Recordatorio: su cita del 3 de diciembre",
    html: "<p>Estimada señora García:</p><p>Le recordamos su cita con la doctora Ruiz el jueves 3 de diciembre a las 10:30. Si no puede venir, llámenos al 912 345 678.</p><p>Clínica del Parque</p>",
  },
  {
    name: "an Italian welcome",
    subject: "Benvenuta in Officina!",
    html: `<p>Ciao Giulia,</p><p>il tuo account è stato creato. Da oggi puoi prenotare i corsi direttamente dal sito.</p>${button("https://officina.test/corsi", "Vai ai corsi")}<p>A presto!</p>`,
  },
  {
    name: "a Portuguese payment slip",
    subject: "Seu boleto de novembro está disponível",
    html: `<p>Olá, Marcos!</p><p>O boleto do plano Família, no valor de R$ 89,90, vence em 28/11. Você também pode pagar por Pix no aplicativo.</p>${button("https://operadora.test/boleto/77", "Ver boleto")}`,
  },
  {
    name: "a Dutch booking",
    subject: "Uw reservering is bevestigd",
    html: "<p>Beste Sanne,</p><p>Uw tafel voor vier personen op vrijdag 27 november om 19.00 uur is bevestigd. Tot dan!</p><p>Restaurant De Kas</p>",
  },
  {
    name: "a Polish order",
    subject: "Potwierdzenie zamówienia 88213",
    html: "<p>Dzień dobry, Panie Łukaszu!</p><p>Dziękujemy za zakupy. Zamówienie zostało opłacone i przekazane do realizacji. Przesyłka dotrze w ciągu 48 godzin.</p>",
  },
  {
    name: "a Russian ticket",
    subject: "Ваш электронный билет",
    html: "<p>Здравствуйте, Ирина!</p><p>Спасибо за покупку. Билет на концерт 5 декабря во вложении к заказу № 4471. Вход с 18:30, возьмите с собой паспорт.</p>",
  },
  {
    name: "a Turkish delivery",
    subject: "Siparişiniz kargoya verildi",
    html: "<p>Merhaba Ayşe,</p><p>Siparişiniz kargoya teslim edildi. Kargo takip numaranız 7710023. İyi günlerde kullanın!</p>",
  },
  {
    name: "a Chinese receipt",
    subject: "您的订单已发货",
    html: "<p>尊敬的王先生:</p><p>您的订单 20261121-8891 已于今日发出,预计三天内送达。感谢您的购买,如有问题请联系客服。</p>",
  },
  {
    name: "a Japanese booking",
    subject: "ご予約確認のお知らせ",
    html: "<p>山田様</p><p>このたびはご予約いただき、ありがとうございます。12月3日(木)18時、2名様でお席をご用意しております。変更は前日までにお電話ください。</p>",
  },
  {
    name: "a Korean notice",
    subject: "주문하신 상품이 배송되었습니다",
    html: "<p>안녕하세요, 김민수 고객님.</p><p>주문하신 상품이 오늘 발송되었습니다. 배송 조회는 마이페이지에서 확인하실 수 있습니다.</p>",
  },
  {
    name: "an Arabic invoice",
    subject: "فاتورتك لشهر نوفمبر",
    html: '<div dir="rtl"><p>مرحباً أحمد،</p><p>فاتورة اشتراكك لشهر نوفمبر جاهزة. المبلغ المستحق 120 درهماً، وسيتم خصمه تلقائياً يوم 28.</p></div>',
  },
  {
    name: "a Hindi reminder",
    subject: "आपकी अपॉइंटमेंट की याद",
    html: "<p>नमस्ते प्रिया जी,</p><p>आपकी अपॉइंटमेंट शुक्रवार सुबह 11 बजे है। कृपया दस मिनट पहले पहुँचें और अपनी रिपोर्ट साथ लाएँ।</p>",
  },
  {
    name: "a Persian note with joiners",
    subject: "سفارش شما ارسال شد",
    html: '<p dir="rtl">سلام سارا، سفارش شما امروز ارسال شد و می‌توانید آن را در صفحه‌ی سفارش‌ها پیگیری کنید. از خرید شما سپاس‌گزاریم.</p>',
  },
  {
    name: "a bank's statement",
    subject: "Your November statement is ready",
    html: `<p>Dear Mr Brown,</p><p>Your statement for the account ending in 0917 is ready in online banking. For your security we never send statements by e-mail, and never ask for your password or PIN.</p>${button("https://online.bank.test/", "Log in")}`,
  },
  {
    name: "a failed payment",
    subject: "We could not charge your card",
    html: `<p>Hi Chris,</p><p>your card was declined when we tried to renew your plan. Please update your payment details by Friday to keep your projects online. We will try again in three days.</p>${button("https://billing.hosting.test/card", "Update card")}`,
  },
  {
    name: "a mortgage bank to its customer",
    subject: "Your mortgage application: next steps",
    html: "<p>Dear Ms Patel,</p><p>Thank you for your application. We need two more documents: your last three payslips and a copy of your passport. Current mortgage rates are locked for you until 15 December.</p><p>Your adviser, Tom</p>",
  },
  {
    name: "a pharmacy's reminder",
    subject: "Your prescription is ready for collection",
    html: "<p>Dear Mrs Novak,</p><p>Your repeat prescription is ready at our branch in Mill Road. Please bring your ID. Our online pharmacy can also deliver it to your home.</p>",
  },
  {
    name: "a lawyer's letter",
    subject: "Estate of the late Mr J. Keller",
    html: "<p>Dear Ms Keller,</p><p>I write as executor of your uncle's estate. As a beneficiary you will receive a copy of the inventory by post. Please call my office to arrange a meeting.</p><p>Dr. A. Stern, notary</p>",
  },
  {
    name: "an invitation with joy",
    subject: "You're invited!",
    html: "<p>Hooray! Mia turns six!</p><p>Please come to her party on Saturday at three, at our house. There will be cake, games and a magician! Let us know by Wednesday whether you can come.</p>",
  },
  {
    name: "a report of monitoring, with an address and a port",
    subject: "[ALERT] db-2 is DOWN",
    html: '<p>Check <b>http</b> on host db-2 has failed 3 times.</p><pre>connect ECONNREFUSED http://db-2.internal.test:8080/health</pre><p><a href="https://monitor.test/c/12">Open the check</a></p>',
  },
  {
    name: "a developers' notification",
    subject: "Re: [waybill] Use a tokenizer, not patterns (#412)",
    html: '<p>Looks good to me, two remarks:</p><pre>if (a &lt; b) { return `${x}`.length }</pre><p>The commit is <a href="https://code.test/c/9fceb02d0ae598e95dc970b74767f19372d61af8">9fceb02</a>. See README.md and Node.js docs.</p>'.replace(
      "`${x}`",
      "x",
    ),
  },
  {
    name: "careless HTML of an old program",
    subject: "Delivery note 77123",
    html: "<TABLE border=1><TR><TD>Pos<TD>Article<TD>Qty<TR><TD>1<TD>Screws M6<TD>200<TR><TD>2<TD>Washers<TD>400</TABLE><P>Delivered to your door.<BR>Regards<P><FONT size=2>Ironmonger Ltd",
  },
  {
    name: "a short link alone in a sentence",
    subject: "Your boarding pass",
    html: '<p>Hi Eva, your boarding pass for flight OS 453 on 2 December is ready.</p><p><a href="https://air.test/bp/9">Show boarding pass</a></p>',
  },
];

/** Unsolicited mail, with the markers that are typical of it. All names and addresses in it are invented. */
export const SPAM: readonly Sample[] = [
  {
    name: "a lottery",
    subject: "CONGRATULATIONS!!! YOU HAVE WON",
    html: "<p>DEAR WINNER,</p><p>Your email was selected in the international online lottery. You have won the sum of $2,500,000.00 US. To claim your prize, contact our agent within 48 hours!!! Act now!!!</p>",
  },
  {
    name: "an inheritance",
    subject: "Strictly confidential business proposal",
    html: "<p>Dear friend,</p><p>I am barrister John Okoro, attorney to a late client who died without next of kin. He left 12.5 million dollars in a dormant account at the central bank. I want you to stand as beneficiary for the transfer of funds. Send me your bank account details.</p>",
  },
  {
    name: "a widow",
    subject: "Greetings in the name of the Lord",
    html: "<p>My dearest, I am Mrs Grace, the wife of a late president's minister. I am dying of cancer and my late husband left million dollars, an inheritance that I want you to use for a charity foundation. I await your urgent response with utmost confidence.</p>",
  },
  {
    name: "drugs",
    subject: "V1AGRA and C1ALIS - 80% off!!",
    html: '<p>Buy Viagra, Cialis, Levitra and Xanax from our Canadian pharmacy. No prescription needed! Order now: <a href="http://203.0.113.9/rx">click here</a></p>',
  },
  {
    name: "drugs behind broken words",
    subject: "Your health offer",
    html: "<p>V<!-- a -->ia<!-- b -->gr<!-- c -->a and Ci<b></b>al<i></i>is, 70% cheaper. Online pharmacy without prescription.</p><p>Order now, satisfaction guaranteed, act now, click here.</p>",
  },
  {
    name: "a locked account at an imitated site",
    subject: "URGENT: your account has been limited",
    from: "service@paypal.com <info@mailer.test>",
    html: '<p>Dear customer, your account has been limited because of unusual activity. Verify your account within 24 hours to avoid permanent suspension.</p><p><a href="http://paypa1-login.test/verify">https://www.paypal.com/verify</a></p>',
  },
  {
    name: "a locked account behind a number",
    subject: "Final warning",
    html: '<p>Your mailbox is full. Failure to do so within 24 hours: your account will be deactivated. Validate your email: <a href="http://192.0.2.44/owa">https://outlook.office.com/validate</a></p>',
  },
  {
    name: "a form that asks for the password",
    subject: "Verify your identity",
    html: '<p>Unusual sign-in detected. Confirm your identity:</p><form action="http://198.51.100.7/x.php"><input name="u"><input type="password" name="p"><input type="submit"></form>',
  },
  {
    name: "a look-alike name in another alphabet",
    subject: "Уour Аpple ID was lосkеd",
    html: '<p>Your аccоunt has been locked. Verify your identity: <a href="http://аpple.test/">https://apple.com/id</a></p>',
  },
  {
    name: "blackmail",
    subject: "I have access to your device",
    html: "<p>I hacked your device and recorded you through your webcam while you were watching porn. If you do not pay in bitcoin, your contacts will get the film. You have 48 hours to pay $950 to my BTC wallet.</p>",
  },
  {
    name: "work from home",
    subject: "Make money fast - earn up to $5000 a week!!!",
    html: "<p>Be your own boss! Make money online with our money making system. Earn money from home, guaranteed income, no obligation. 100% free! Click here and act now!!</p>",
  },
  {
    name: "crypto-currency",
    subject: "Double your Bitcoin today!!",
    html: '<p>Our trading robot gives guaranteed returns: daily profits of 12%. A risk free investment. Double your bitcoin in 24 hours.</p><p><a href="https://bit.ly/3abcde">Join now</a></p>',
  },
  {
    name: "a casino",
    subject: "200 FREE SPINS WAITING FOR YOU",
    html: "<p>The best online casino of the year! 200 free spins, no deposit bonus and a welcome bonus of 500%. Slot machines and sports betting. Limited time, click here, act fast!!! Play now!!!</p>",
  },
  {
    name: "a loan",
    subject: "Instant loan, BAD CREDIT OK!!",
    html: "<p>Bad credit? No credit check! Get an instant loan, eliminate your debt with debt consolidation at the lowest rates. No obligation. Apply now, call now, no cost.</p>",
  },
  {
    name: "dating",
    subject: "Hot singles in your area 😘😘😘😘",
    html: '<p>Horny women want to meet you. Hot girls, live sex, adult dating. <a href="http://tinyurl.com/xyz">Click here</a></p>',
  },
  {
    name: "a miracle cure",
    subject: "Doctors hate this: lose weight fast!!",
    html: "<p>The weight loss miracle: keto gummies burn fat while you sleep. Lose 20 pounds in ten days. Money back guarantee, risk free, free trial, order now!!! This is not a scam!!!</p>",
  },
  {
    name: "copied watches",
    subject: "R O L E X replica watches -90%!!",
    html: "<p>Luxury replicas, designer replicas, replica watches. Rolex from 99 dollars. Best prices, exclusive deal, limited time, buy now.</p>",
  },
  {
    name: "ranking in search engines",
    subject: "Get on the first page of Google!!!",
    html: "<p>Hello dear, we offer SEO services and SEO packages: rank your website, increase your traffic, buy backlinks. Web design company with 10 years. This is not spam; to be removed from our list, reply.</p>",
  },
  {
    name: "hidden text",
    subject: "Free gift card winner",
    html: `<div style="display:none">${"The meeting notes of last week discussed the budget and the garden. ".repeat(20)}</div><p>You won! Claim your reward: <a href="http://203.0.113.5/win.exe">here</a></p>`,
  },
  {
    name: "text in the colour of its background",
    subject: "You won a free iPhone",
    html: `<p style="color:#fff">${"novel chapter river mountain said quietly yesterday ".repeat(20)}</p><p>Claim your prize! <a href="http://bit.ly/p">Click here</a>, act now, limited time offer, last chance!</p>`,
  },
  {
    name: "a program that poses as an invoice",
    subject: "Invoice overdue - immediate action required",
    html: '<p>Final notice! Open the invoice: <a href="http://192.0.2.8/invoice.pdf.exe">invoice.pdf</a></p>',
  },
  {
    name: "a page inside of a link",
    subject: "URGENT: mailbox quota exceeded",
    html: '<p>Your mailbox is almost full. Verify your account within 24 hours: <a href="data:text/html;base64,PGZvcm0+PC9mb3JtPg==">https://mail.example.com/quota</a></p>',
  },
  {
    name: "an image and nothing else",
    subject: "WINNER!! OPEN NOW!!",
    html: '<a href="http://203.0.113.77/"><img src="http://203.0.113.77/offer.jpg"></a>',
  },
  {
    name: "letters with gaps and placeholders left",
    subject: "F R E E   C A S H for you $$$",
    html: "<p>Dear [FIRST NAME], get F R E E money, no strings attached, absolutely free, act now! Earn money from home!!! Click here!!!</p>",
  },
  {
    name: "styled letters",
    subject: "𝐂𝐥𝐚𝐢𝐦 𝐲𝐨𝐮𝐫 𝐩𝐫𝐢𝐳𝐞 𝐧𝐨𝐰",
    html: "<p>𝐘𝐨𝐮 𝐡𝐚𝐯𝐞 𝐰𝐨𝐧 a cash prize! Lucky winner, claim your reward now!</p>",
  },
  {
    name: "a Spanish lottery",
    subject: "¡¡¡HA GANADO UN PREMIO!!!",
    html: "<p>Querido amigo: usted ha ganado la lotería. Reclame su premio de €1.500.000 en 24 horas. Haga clic aquí, oferta limitada, actúa ahora!!!</p>",
  },
  {
    name: "a French hunt for passwords",
    subject: "Dernier avertissement : votre compte",
    html: '<p>Votre compte a été suspendu. Vérifiez votre compte et confirmez votre identité sous 24 heures : <a href="http://203.0.113.12/ameli">https://www.ameli.fr/compte</a></p>',
  },
  {
    name: "a German bank that is none",
    subject: "DRINGEND: Ihr Konto wurde gesperrt!!",
    html: '<p>Ihr Konto wurde gesperrt. Verifizieren Sie Ihr Konto innerhalb von 24 Stunden, sonst wird es gelöscht: <a href="http://sparkasse-login.test/">https://www.sparkasse.de</a></p>',
  },
  {
    name: "German money",
    subject: "Schnelles Geld verdienen!!!",
    html: "<p>Lieber Freund, werden Sie unabhängig: passives Einkommen, finanzielle Freiheit, garantierte Rendite. Jetzt handeln! Hier klicken! 100% gratis, ohne Risiko!!</p>",
  },
  {
    name: "an Italian prize",
    subject: "HAI VINTO UN IPHONE GRATIS!!",
    html: '<p>Complimenti! Hai vinto un premio. Ritira il tuo premio entro 24 ore: <a href="https://cutt.ly/abc">clicca qui</a>. Offerta limitata, completamente gratuito!!</p>',
  },
  {
    name: "a Portuguese loan",
    subject: "EMPRÉSTIMO IMEDIATO SEM CONSULTA!!",
    html: "<p>Empréstimo imediato, empréstimo sem consulta! Clique aqui, aja agora, sem compromisso, totalmente grátis!!</p>",
  },
  {
    name: "a Russian prize",
    subject: "ВЫ ВЫИГРАЛИ!!! СРОЧНО",
    html: "<p>Поздравляем! Вы выиграли 5 миллионов. Получите приз: нажмите здесь, только сегодня! Лёгкие деньги, заработок без вложений!!</p>",
  },
  {
    name: "a Turkish casino",
    subject: "DENEME BONUSU KAZANDINIZ!!!",
    html: "<p>Casino siteleri, canlı bahis, bedava bahis ve deneme bonusu! Hemen tıkla, sınırlı süre, tamamen ücretsiz!!</p>",
  },
  {
    name: "a Chinese prize",
    subject: "恭喜中奖!!! 紧急",
    html: "<p>恭喜中奖!您中奖了,请立即点击领取奖金。限时优惠,免费领取,轻松赚钱!!</p>",
  },
  {
    name: "a Japanese trap",
    subject: "【緊急】アカウントが停止されました!!",
    html: '<p>異常なアクティビティが検出されました。24時間以内にアカウントを確認してください。</p><p><a href="http://203.0.113.31/jp">https://www.amazon.co.jp/verify</a></p>',
  },
  {
    name: "the test string",
    subject: "Test",
    html: "<p>XJS*C4JDBQADN1.NSBN3*2IDNEN*GTUBE-STANDARD-ANTI-UBE-TEST-EMAIL*C.34X</p>",
  },
];
