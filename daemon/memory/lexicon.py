"""What words of development mean, in English, German, French and Spanish: one concept a line.

A task is worded anew each time, and not always in the same language; the embedding model of this machine
knows English best. These are everyday words of the trade. A word of five letters or more stands for all that
begin with it; shorter ones stand for themselves. No accents: words are folded before they are looked up.
"""

from __future__ import annotations

from typing import Final

_ACTIONS: Final = """
add: add adds adding added append introduce fuge hinzu erganz einbau einfug baue ajout anad agreg incorpor
    include provide
make: make create creates creating build builds built implement write writes developer entwick erstell
    schreib leg lege anleg implementier cree creer creez ecris ecrire construi developp haz hacer crea crear
    escrib desarroll
remove: remov delet drop drops dropping rid erase erasing eliminat clean cleanup purge prune discard losch
    losche entfern geloscht weg supprim retir enlev efface quita quite borra elimin suprim
fix: fix fixes fixed fixing repair mend resolve solve correct bugfix behebe beheb behoben repar reparier
    korrig richtig corrig corrij repare arregl soluci
break: break breaks broken broke crash crashes crashing crashed fail fails failing failed failure dies die
    bricht abbruch sturzt absturz fehlschl schlagt scheiter kaputt plante echou echec casse falla fallo
    fallan rompe error errors fehler erreur errore bug bugs exception
change: chang modif adjust alter ander anpass angepasst cambi ajust
rename: rename renam umbenenn benenn heisst heissen renomm renombr
replace: replac swap substitut ersetz austausch ersatz remplac reemplaz sustitu
upgrade: upgrad bump bumps update updates updating aktualis hochzieh mettre mets miseajour actualiz jour
migrate: migrat migrier wander portier port convert konvertier umstell stelle wandle umwand conversion
    converti conviert passe passer
move: move moves moving moved verschieb deplace mueve mover
split: split splits separat divide aufteil teile trenn getrennt divis separ divid
merge: merge merges merging combin zusammenfuhr fusion unir
test: test tests testing tested spec specs unittest pytest cover coverage teste prueb prueba essai getestet
    testfall
show: show shows display anzeig zeig angezeigt affich montre muestr mostr visualis render renders rendering
    rendu
hide: hide hides hidden versteck verberg masqu ocult
search: search find lookup suche suchen sucht such gesucht recherch cherch busca buscar busqued
filter: filter filters filtering filtern filtre filtr
sort: sort sorts sorting sorted sortier trier tri ordena ordenar
page: paginat paging seitenweis blatter pagina paginer cursor
export: export download downloads herunterlad ausgabe telecharg descarg exporta
import: import einles importier importa
upload: upload hochlad hochgelad hochlade televers subir subida sube
validate: validat verif check checks checking prufe pruf geprueft validier valide verifi comprueb contro
limit: limit limits limiting throttl restrict begrenz beschrank limite limita
speed: speed faster slow slower slowness performan optimiz optimis accelerat beschleunig langsam schnell
    trage lent lente lenteur rapid rapide lento lentisim tarda acelera rendimi
cache: cache caches caching cached memoiz zwischenspeich
retry: retry retries retrying retried wiederhol nochmal reessa reintent
rollback: rollback revert undo ruckgang zurucknehm annul deshac revertir
deploy: deploy releas rollout ausliefer veroffent publish publi publie despleg deploie
install: install installier
configure: configur konfigur einricht richte setup einstell reglage param parametr
document: document docs readme dokument beschreib documentation documenta
translate: translat ubersetz tradui traduc traduz localiz i18n
log: log logs logging logged logger protokol journal journalis registr
refactor: refactor restructur tidy umbau aufraum refaktor refactoris factoris
reduce: reduc smaller shrink shrinks less verklein verring kleiner rediminu reduir reduis petit moins redui
    menos pequen
increase: increas raise raises larger bigger grow erhoh grosser vergross augment aument
enable: enabl activat aktivier einschalt anschalt active activez activer activa
disable: disabl deactivat deaktivier abschalt ausschalt desactiv
start: start starts startup boot launch launches starten demarr lance lancer arranc inici
stop: stop stops shutdown graceful terminat beend abfahr arret detene apag apagu parar
schedule: schedul cron nightly nacht nachts nachtlich nocturn planif geplant
lock: lock locks locking locked sperr gesperrt verrou bloque bloqu
race: race concurren simultan gleichzeit nebenlauf parallel atomar atomic concurr paralel
leak: leak leaks leaking speicherleck fuite fuga
encrypt: encrypt crypt verschlussel chiffr cifra
protect: protect secure secur absicher schutz securis proteg asegur
lint: lint linter linting ruff eslint flake8 pylint clippy stylecheck
block: block blocks blocked blocking abuse bruteforce lockout lockt
twice: twice duplic double doppelt zweimal deux doble
remember: remember recall merken merke retenir recordar
wait: wait waits waiting warte warten attend attente espera esperar
connect: connect verbind verbund relier conecta
send: sends send sending sent sende senden schick versend envoie envoyer envoi envia enviar envio
read: read reads reading parse parses parser parsing lese lesen liest analys lire leer interpret
sign: unterschr firmar signer
approve: approv genehmig freigab approuv aprob
compare: compar vergleich
count: count counts counting zahle zahlt compter contar
sync: sync synchron
restore: restor wiederherstell restaur
resize: resiz skalier redimension thumbnail vorschaubild miniature miniatur
compress: compress komprim zip gzip
style: format formats formatter prettier black
"""
_THINGS: Final = """
user: user users benutzer nutzer anwender utilisat usuari
customer: customer client clients kunde kunden klient cliente
account: account accounts konto konten kontoausz compte comptes cuenta cuentas
order: order orders bestell commande pedido pedidos
invoice: invoice bill bills billing rechnung faktura facture factura
payment: payment pay pays paid charge charges zahl zahlung bezahl paiement payer pago pagos cobrar pagar
refund: refund ruckerstatt erstattung rembours reembols
product: product produkt artikel produit producto
price: price prices pricing preis preise prix precio
report: report reports bericht berichte rapport informe
table: table tables tabelle tabla
column: column columns spalte colonne columna
row: row rows zeile zeilen ligne fila filas
database: database datenbank postgre mysql sqlite
query: query queries abfrage requete consult
index: index indexes indice
schema: schema schemas
transaction: transact transakt
endpoint: endpoint endpunkt route routes router
request: request anfrage peticion solicitud
response: response antwort reponse respuest
server: server servers serveur servidor
service: service services dienst servicio
worker: worker workers
job: job jobs task tasks aufgabe tache taches tarea tareas
queue: queue queues warteschl cola
session: session sessions sitzung sesion sesiones
login: login logins signin anmeld einlogg connexion identifi
signup: signup registration registrier inscri registro
logout: logout abmeld deconnex
password: password passwort kennwort contrasen forgot
token: token tokens jeton jwt bearer
auth: authenti authori oauth autoris autoriz autenti permission berecht
role: role roles rolle rollen rol admin
email: email emails mail mails courriel correo
notification: notif benachricht avis
message: message messages nachricht meldung meldungen mensaj
file: file files datei dateien fichier archivo fichero
folder: folder directory ordner verzeichnis dossier repertoire carpeta directorio
image: image images picture pictures photo bild bilder foto fotos imagen
attachment: attachm anhang anhange adjunt
size: size grosse taille tamano
memory: memory speicher arbeitsspeich memoire memoria heap
disk: disk festplatte disque disco
form: form forms formular formulaire
field: field fields feld felder champ champs campo campos
button: button buttons knopf schaltflach bouton boton botones
page_ui: page pages seite seiten
list: list lists liste listen lista listado listar
dialog: dialog modal popup fenster fenetre ventana
menu: menu menus navigation
theme: theme themes dark oscuro dunkel sombre thema tema
language: language languages sprache langue idioma
date: date dates datum fecha fechas
time: time times zeit uhrzeit heure hora
timezone: timezone zeitzone fuseau
duration: duration dauer duree duracion timeout interval
number: number numbers nummer zahlen numero numeros
name: name names nom noms nombre nombres namen
address: address adresse direccion
currency: currency wahrung devise moneda exchange wechselkurs taux
tax: tax taxes steuer mwst impot impuest vat
settings: setting settings option options config configs einstellung reglages ajustes opcion opciones
dependency: depend abhangig
package: package packages paket pakete paquet paquete bundle modul module modulo
version: version versions
branch: branch branches zweig branche rama
commit: commit commits
pipeline: pipeline ci workflow github gitlab actions
container: container docker dockerfile conteneur contened
environment: environ umgebung environnem entorno
network: network netzwerk reseau
certificate: certific zertifik
secret: secret secrets geheim
key: key keys schlussel cle cles clave claves
api: api apis schnittst
function: function functions funktion fonction funcion method methode metodo
class: class classes klasse klassen clase clases
type: type types typ typen tipo tipos typing typecheck
variable: variabl
component: component komponent composant
icon: icon icons symbol symbole icono
style: style styles css stylesheet
chart: chart charts graph diagramm graphique grafico
backup: backup backups datensicher sicherung sauvegard respaldo
data: data daten donnees datos
record: record records eintrag eintrage datensatz enregistrem registros
duplicate: duplic doppelt doublon double doubled
missing: missing fehlt fehlend manqu falta faltan
old: old outdated obsolet deprec veraltet alte alten ancien vieux viejo antigu expired abgelauf
new: neue neuer neues nouveau nouvel nuevo nueva
empty: empty leer vide vacio vacia
invalid: invalid ungultig wrong false falsch fausse faux
large: large big huge gross grosse groesser grand grande enorme monster
month: month months monthly monat monatl mois mensuel mes mensual
day: day days daily tag tage taglich quotid dia diario
night: night nightly nachts nocturne
hour: hour hours stunde stunden heures horas minutes
card: card cards karte karten carte tarjeta kredit credit
error_text: fehlermeld
webhook: webhook webhooks callback callbacks
cart: cart basket warenkorb panier carrito
stock: stock inventory lager bestand inventaire inventario
shipping: shipping shipment delivery versand liefer livraison envio entrega
discount: discount coupon voucher rabatt gutschein remise reduction descuento cupon
subscription: subscri abonnement abo suscrip
comment: comment comments kommentar comentario commentaire
profile: profile profiles profil perfil
dashboard: dashboard tableau panel cockpit
calendar: calendar kalender calendrier calendario appointment termin termine rendez cita
map: map maps landkarte mapa
video: video videos
audio: audio sound ton
mobile: mobile android ios handy movil
browser: browser chrome firefox safari navigateur navegador
url: url urls link links
redirect: redirect weiterleit umleit redirig redirection
header: header headers kopfzeil entete cabecera
cookie: cookie cookies
cors: cors origin
proxy: proxy nginx balancer
port: ports
thread: thread threads
event: event events ereignis evenement evento
stream: stream streams streaming
websocket: websocket socket sockets
string: string strings zeichenkett chaine cadena
encoding: encod unicode utf umlaut umlaute charset zeichensatz encodage codificac
json: json
xml: xml
yaml: yaml yml
csv: csv spreadsheet excel
pdf: pdf
sql: sql orm
script: script scripts skript
terminal: terminal shell bash console konsole
example: example examples beispiel exemple ejemplo
warning: warning warnings warnung avert advert
coverage: coverage abdeckung couverture cobertura
production: produktion produccion production prod
frontend: frontend ui oberflach interface interfaz
backend: backend
gdpr: gdpr dsgvo rgpd privacy datenschutz
license: licen lizenz
metric: metric metrics metrik prometheus monitor
health: health gesund salud sante healthcheck
feature: feature features funktionalit fonctionnal funcionalidad
random: random zufall aleatoi aleator hasard
tree: tree trees baum baume arbre arbol
hash: hash hashes checksum prufsumme
"""

_EMPTY: Final = """
a an the this that these those it its is are was were be been being am do does did done have has had can
could will would shall should may might must of to in on at by for from with without into out up off over
under and or but if then than as so not no yes all any each every some one two our your my we you i me us
they them he she his her please just also only again still now there here when where which who what why how
very more most much many too need needs want wants use uses using let get gets getting give given take takes
way thing things s t re ve ll d m der die das den dem des ein eine einen einem einer eines und oder aber
nicht kein keine ist sind war waren wird werden wurde soll sollen sollte muss mussen kann konnen darf durfen
mit ohne fur von vom zu zum zur im auf aus bei beim nach vor uber unter durch wenn dann als wie auch nur
noch schon bitte ich du er sie es wir ihr uns unser unsere unseren mein sich man mehr alle allen alles jede
jeder jedes jeden dass damit wer wo da hier statt sein seine haben hat le la les l un une de et ou mais ne
pas plus est sont etait etre avec sans pour par sur sous dans au aux en que qui quoi dont ce cet cette ces
il elle nous vous ils elles je tu mon ma mes notre nos votre son sa ses se si tout tous toute toutes faut
faire fait doit doivent veux peut peuvent y aussi comme quand ici bien tres el los las uno unos unas o pero
era ser esta este esto estos estas ese esa con sin para por sobre al del lo su sus quien cual cuando como
donde mi mis nuestro nuestra hay debe deben quiero puede pueden muy mas todo todos toda todas tambien ya
haga hace
"""
LONG: Final = 5
EMPTY: Final = frozenset(_EMPTY.split())
"""Words that carry nothing."""


def _lines(block: str) -> list[tuple[str, list[str]]]:
    joined = block.strip().replace("\n    ", " ").splitlines()
    return [(concept, words.split()) for concept, _, words in (line.partition(":") for line in joined)]


def _table(*blocks: str) -> tuple[dict[str, str], dict[str, str]]:
    whole: dict[str, str] = {}
    beginnings: dict[str, str] = {}
    for block in blocks:
        for concept, words in _lines(block):
            for word in words:
                (beginnings if len(word) >= LONG else whole).setdefault(word, concept)
    return whole, beginnings


WHOLE, BEGINNINGS = _table(_ACTIONS, _THINGS)
ACTIONS: Final = frozenset(concept for concept, _ in _lines(_ACTIONS))
GENERAL: Final = frozenset({"add", "make", "change", "fix", "break", "enable", "configure"})
"""Actions that say little: nearly every task adds, makes or changes something, and mends what breaks."""
